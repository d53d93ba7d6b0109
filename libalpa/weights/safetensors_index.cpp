#include "libalpa/weights/safetensors_index.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/weights/safetensors_header.h"

namespace alpa {
namespace {

constexpr std::size_t longest_file_name = 255, most_files = 512;  ///< all are open at a time

bool is_file_name(const std::string& text) {
  return is_tensor_name(text) && text.size() <= longest_file_name && text.ends_with(".safetensors") &&
         !text.starts_with('.') && text.find('/') == std::string::npos;
}

/// Takes the index apart as it is read. What `metadata` holds is passed over.
class IndexHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit IndexHandler(const std::string& file) : file_(file) {}

  std::map<std::string, std::string> weight_map;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("'{}' is not an index of safetensors files: {}", file_, what),
                "fetch it again; the name of one safetensors file will do, where the model is in one");
  }

  void finish() const {
    if (weight_map.empty()) refuse("weight_map is missing or has no tensors");
  }

  bool start_object(std::size_t) override {
    if (depth_ > 1 && !in_metadata()) return wrong("an object");
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    if (!in_metadata()) return wrong("an array");
    ++depth_;
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(std::string& text) override {
    if (depth_ == 1) {
      if (text != "metadata" && text != "weight_map")
        refuse(fmt::format("'{}', expected metadata and weight_map", shown(text)));
      if (!sections_.insert(text).second) refuse(fmt::format("'{}' appears twice", text));
      section_ = text;
    } else if (!in_metadata()) {
      if (!is_tensor_name(text))
        refuse(fmt::format("'{}' as a tensor's name, expected printable characters without blanks",
                           shown(text)));
      if (weight_map.contains(text)) refuse(fmt::format("tensor '{}' appears twice", shown(text)));
    }
    key_ = text;
    return true;
  }

  bool string(std::string& text) override {
    if (in_metadata()) return true;
    if (depth_ != 2) return wrong("a text");
    if (!is_file_name(text))
      refuse(
          fmt::format("'{}' as the file of tensor '{}', expected a name that ends in .safetensors, of a "
                      "file in the same folder",
                      shown(text), shown(key_)));
    if (files_.insert(text).second && files_.size() > most_files)
      refuse(fmt::format("more than {} files", most_files));
    weight_map.emplace(key_, text);
    return true;
  }

  bool number_integer(std::int64_t) override { return wrong("a number"); }
  bool number_unsigned(std::uint64_t) override { return wrong("a number"); }
  bool number_float(double, const std::string&) override { return wrong("a number"); }
  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("a truth value"); }
  bool binary(nlohmann::json::binary_t&) override { return wrong("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse(fmt::format("it is not JSON from byte {} on", position));
  }

 private:
  bool in_metadata() const { return depth_ > 1 && section_ == "metadata"; }

  bool wrong(const char* what) const {
    if (in_metadata()) return true;
    if (depth_ == 0) refuse(fmt::format("it is {}, expected an object", what));
    refuse(fmt::format("{} as '{}', expected {}", what, shown(key_),
                       depth_ == 1 ? "an object" : "the name of a file"));
  }

  const std::string& file_;
  int depth_ = 0;
  std::string section_, key_;  ///< of the outermost object; of the innermost
  std::set<std::string> sections_, files_;
};

}  // namespace

std::map<std::string, std::string> read_safetensors_index(const std::filesystem::path& path) {
  const std::string name = path.string();
  IndexHandler handler(name);
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file)
    throw Error(ErrorKind::input,
                fmt::format("cannot read '{}': {}", name, failed ? failed.message() : "no permission"),
                "give an index file that exists and that you may read");
  if (bytes > static_cast<std::uintmax_t>(longest_safetensors_header))
    handler.refuse(fmt::format("it has {} bytes, expected at most {}", bytes, longest_safetensors_header));
  nlohmann::json::sax_parse(file, &handler);
  handler.finish();
  return std::move(handler.weight_map);
}

}  // namespace alpa
