#include "libalpa/weights/safetensors_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/json.h"

namespace alpa {
namespace {

constexpr std::size_t longest_name = 256, most_dimensions = 8;

constexpr std::array<std::pair<std::string_view, int>, 15> element_bytes{{{"F32", 4},
                                                                          {"BF16", 2},
                                                                          {"F16", 2},
                                                                          {"F64", 8},
                                                                          {"I64", 8},
                                                                          {"I32", 4},
                                                                          {"I16", 2},
                                                                          {"I8", 1},
                                                                          {"U64", 8},
                                                                          {"U32", 4},
                                                                          {"U16", 2},
                                                                          {"U8", 1},
                                                                          {"BOOL", 1},
                                                                          {"F8_E4M3", 1},
                                                                          {"F8_E5M2", 1}}};

/// 0: not known.
int bytes_of(std::string_view dtype) {
  for (const auto& [name, bytes] : element_bytes)
    if (name == dtype) return bytes;
  return 0;
}

/// Bytes of shape and type; nullopt where an integer of 64 bits does not hold them.
std::optional<std::int64_t> bytes_of(const StoredTensor& tensor) {
  std::int64_t bytes = bytes_of(tensor.dtype);
  bool fits = true;
  for (const std::int64_t extent : tensor.shape)
    fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
  // An extent of 0 after one that did not fit is reported as too large all the same.
  return fits ? std::optional(bytes) : std::nullopt;
}

/// Takes the header apart as it is read, so that nothing grows which the format has no place for.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(const std::string& file) : file_(file) {}

  std::vector<StoredTensor> tensors;

  [[noreturn]] void refuse(const std::string& what) const {
    const std::string about = where_ == Where::file || where_ == Where::tensors
                                  ? ""
                                  : fmt::format("tensor '{}': ", shown(tensor_.name));
    throw Error(ErrorKind::input, fmt::format("the header of '{}' is damaged: {}{}", file_, about, what),
                "fetch the file again, or have the safetensors library write it again");
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::file)
      where_ = Where::tensors;
    else if (where_ == Where::tensors)
      begin_entry();
    else
      refuse(fmt::format("an object as '{}', expected {}", shown(key_), expected()));
    return true;
  }

  bool end_object() override {
    if (where_ == Where::tensor) end_tensor();
    where_ = Where::tensors;  // after the outermost object nothing follows that the parser would let pass
    return true;
  }

  bool key(std::string& text) override {
    if (where_ == Where::tensors && text != "__metadata__" && !is_tensor_name(text))
      refuse(fmt::format("'{}' as a tensor's name, expected 1 to {} printable characters without blanks",
                         shown(text), longest_name));
    std::set<std::string>& known = where_ == Where::tensors ? names_ : keys_;
    if (!known.insert(text).second) refuse(fmt::format("'{}' appears twice", shown(text)));
    key_ = text;
    if (where_ == Where::tensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      refuse(fmt::format("'{}', expected dtype, shape and data_offsets", shown(key_)));
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::tensor || key_ == "dtype")
      refuse(fmt::format("an array as '{}', expected {}", shown(key_), expected()));
    where_ = Where::numbers;
    return true;
  }

  bool end_array() override {
    where_ = Where::tensor;
    return true;
  }

  bool number_unsigned(std::uint64_t number) override {
    if (where_ != Where::numbers) return wrong("a number");
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(fmt::format("{} in {}, which is too large", number, key_));
    Shape& to = key_ == "shape" ? tensor_.shape : offsets_;
    if (to.size() == (key_ == "shape" ? most_dimensions : 2))
      refuse(fmt::format("{} numbers or more in {}, expected {}", to.size() + 1, key_,
                         key_ == "shape" ? fmt::format("at most {}", most_dimensions) : "[begin, end]"));
    to.push_back(static_cast<std::int64_t>(number));
    return true;
  }

  bool string(std::string& text) override {
    if (where_ == Where::metadata) return true;
    if (where_ != Where::tensor || key_ != "dtype") return wrong("a text");
    tensor_.dtype = text;
    return true;
  }

  bool number_integer(std::int64_t) override { return wrong("a negative number"); }
  bool number_float(double, const std::string&) override { return wrong("a fraction"); }
  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("a truth value"); }
  bool binary(nlohmann::json::binary_t&) override { return wrong("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    where_ = Where::file;
    refuse(fmt::format("it is not JSON from byte {} on", position));
  }

 private:
  enum class Where { file, tensors, tensor, metadata, numbers };

  std::string expected() const {
    if (where_ == Where::file) return "an object";
    if (where_ == Where::tensors) return "an object for each tensor";
    if (where_ == Where::metadata) return "a text";
    if (where_ == Where::numbers) return "integers from 0";
    return key_ == "dtype" ? "a text" : "an array of integers from 0";
  }

  bool wrong(const char* what) const {
    refuse(fmt::format("{} as '{}', expected {}", what, shown(key_), expected()));
  }

  void begin_entry() {
    keys_.clear();
    tensor_ = {};
    tensor_.name = key_;
    offsets_.clear();
    where_ = key_ == "__metadata__" ? Where::metadata : Where::tensor;
  }

  void end_tensor() {
    for (const char* needed : {"dtype", "shape", "data_offsets"})
      if (!keys_.contains(needed)) refuse(fmt::format("{} is missing", needed));
    if (bytes_of(tensor_.dtype) == 0)
      refuse(fmt::format("the type '{}' is not known, expected F32, BF16, F16 or another of the format",
                         shown(tensor_.dtype)));
    const std::optional<std::int64_t> bytes = bytes_of(tensor_);
    if (!bytes) refuse(fmt::format("a shape of {} is too large", shape_text(tensor_.shape)));
    if (offsets_.size() != 2) refuse(fmt::format("{} data_offsets, expected [begin, end]", offsets_.size()));
    std::tie(tensor_.begin, tensor_.end) = std::pair(offsets_[0], offsets_[1]);
    if (tensor_.end < tensor_.begin || tensor_.end - tensor_.begin != *bytes)
      refuse(fmt::format("data_offsets [{}, {}], expected {} bytes for {} of {}", tensor_.begin, tensor_.end,
                         *bytes, shape_text(tensor_.shape), tensor_.dtype));
    tensors.push_back(tensor_);
  }

  const std::string& file_;
  Where where_ = Where::file;
  std::string key_;
  std::set<std::string> names_, keys_;
  StoredTensor tensor_;
  Shape offsets_;
};

}  // namespace

bool is_tensor_name(const std::string& text) {
  return !text.empty() && text.size() <= longest_name &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string shown(std::string text) {
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

std::vector<StoredTensor> parse_safetensors_header(std::string_view header, std::int64_t data_bytes,
                                                   const std::string& file) {
  HeaderHandler handler(file);
  if (!header.starts_with('{')) handler.refuse("it does not start with '{'");
  nlohmann::json::sax_parse(header.begin(), header.end(), &handler);
  std::vector<StoredTensor>& tensors = handler.tensors;
  const auto place = [](const StoredTensor& t) { return std::tuple(t.begin, t.end, t.name); };
  std::sort(tensors.begin(), tensors.end(),
            [&](const StoredTensor& a, const StoredTensor& b) { return place(a) < place(b); });
  std::int64_t end = 0;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::input, fmt::format("'{}' is damaged: {}", file, what),
                "fetch the file again; it may have been cut short, or altered");
  };
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != end)
      refuse(fmt::format("tensor '{}' begins at byte {} of the data, expected {}, where the one before ends",
                         tensor.name, tensor.begin, end));
    end = tensor.end;
  }
  if (end != data_bytes)
    refuse(fmt::format("{} bytes follow the header, expected {}, where tensor '{}' ends", data_bytes, end,
                       tensors.empty() ? "" : tensors.back().name));
  return std::move(tensors);
}

std::string safetensors_header(std::vector<StoredTensor>& tensors) {
  JsonObject header;
  header.set("__metadata__", JsonObject().set("format", "pt"));  // transformers reads no file without it
  std::int64_t end = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.begin = end;
    end += bytes_of(tensor).value();
    tensor.end = end;
    JsonArray shape;
    for (const std::int64_t extent : tensor.shape) shape.add(extent);
    header.set(tensor.name, JsonObject()
                                .set("dtype", tensor.dtype)
                                .set("shape", shape)
                                .set("data_offsets", JsonArray().add(tensor.begin).add(tensor.end)));
  }
  std::string text = header.text();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned
  return text;
}

}  // namespace alpa
