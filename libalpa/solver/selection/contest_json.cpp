#include "libalpa/solver/selection/contest_json.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

[[noreturn]] void refuse_json(const std::string& what) {
  throw Error(ErrorKind::input, what, "github.com/google/iopddl describes the format");
}

// The whole file, decompressed where it is compressed.
std::string text_of(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) throw Error(ErrorKind::input, "there is no such file");
  if (std::filesystem::is_directory(path, failure)) throw Error(ErrorKind::input, "that is a folder");
  const auto close = [](gzFile file) { gzclose(file); };
  const std::unique_ptr<gzFile_s, decltype(close)> file(gzopen(path.c_str(), "rbe"), close);
  if (!file) refuse_json(fmt::format("it cannot be opened: {}", std::strerror(errno)));
  constexpr std::size_t chunk = std::size_t{1} << 22, most = std::size_t{1} << 33;
  gzbuffer(file.get(), 1 << 18);
  std::string text;
  while (true) {
    const std::size_t end = text.size();
    text.resize(end + chunk);
    const int got = gzread(file.get(), text.data() + end, chunk);
    int status = Z_OK;
    const char* message = gzerror(file.get(), &status);
    if (got < 0 || status == Z_BUF_ERROR)
      refuse_json(fmt::format("it cannot be read to its end: {}",
                              status == Z_ERRNO ? std::strerror(errno) : message));
    text.resize(end + static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) < chunk) return text;
    if (text.size() > most) refuse_json(fmt::format("it holds more than {} bytes", most));
  }
}

// Takes the events of the parser; the grammar of an instance is: lists of lists of integers under five paths.
class ContestParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ContestParser(ContestFields& fields)
      : lists_{{"problem.nodes.intervals", &fields.intervals},
               {"problem.nodes.costs", &fields.node_costs},
               {"problem.nodes.usages", &fields.usages},
               {"problem.edges.nodes", &fields.edges},
               {"problem.edges.costs", &fields.edge_costs}},
        limit_(fields.usage_limit) {}

  void check_complete() const {
    for (const Member& member : lists_)
      if (!member.seen) refuse_json(fmt::format("'{}' is missing", member.path));
  }

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("true or false"); }
  bool number_float(double, const std::string& text) override { return other(text); }
  bool string(std::string&) override { return other("a text"); }
  bool binary(nlohmann::json::binary_t&) override { return other("bytes"); }
  bool number_integer(std::int64_t value) override { return integer(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return other(fmt::format("{}, beyond 64 bits", value));
    return integer(static_cast<std::int64_t>(value));
  }

  bool key(std::string& name) override {
    const std::size_t dot = objects_.back();
    path_.resize(dot);
    if (dot > 0) path_ += '.';
    path_ += name;
    current_ = nullptr;
    for (Member& member : lists_)
      if (arrays_ == 0 && member.path == path_) {
        if (std::exchange(member.seen, true)) refuse_json(fmt::format("'{}' appears twice", path_));
        current_ = &member;
      }
    at_limit_ = arrays_ == 0 && path_ == "problem.usage_limit";
    return true;
  }
  bool start_object(std::size_t) override {
    if (current_ || at_limit_) other("an object");
    objects_.push_back(path_.size());
    return true;
  }
  bool end_object() override {
    path_.resize(objects_.back());
    objects_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (at_limit_ || (current_ && arrays_ == 2)) other("a list");
    ++arrays_;
    return true;
  }
  bool end_array() override {
    --arrays_;
    if (current_ && arrays_ == 1) current_->into->ends.push_back(current_->into->values.size());
    if (arrays_ == 0) current_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 1: syntax error while ..."
    std::string_view said = error.what();
    for (const std::string_view before : {"] ", "column ", ": "})
      said.remove_prefix(std::min(said.find(before) + before.size(), said.size()));
    refuse_json(fmt::format("not JSON at byte {}: {}", at, said));
  }

 private:
  struct Member {
    std::string path;
    IntegerLists* into;
    bool seen = false;
  };

  bool integer(std::int64_t value) {
    if (at_limit_) {
      limit_ = value;
      at_limit_ = false;
    } else if (current_) {
      if (arrays_ != 2) other(std::to_string(value));
      current_->into->values.push_back(value);
    }
    return true;
  }

  // What is none of the integers that belong there.
  bool other(const std::string& found) {
    if (at_limit_) refuse_json(fmt::format("'{}' should be an integer, not {}", path_, found));
    if (!current_) return true;
    const std::size_t at = current_->into->size();
    if (arrays_ == 2) refuse_json(fmt::format("'{}[{}]' should hold integers, not {}", path_, at, found));
    refuse_json(fmt::format("'{}' should be a list of lists of integers; entry {} is {}", path_, at, found));
  }

  std::vector<Member> lists_;
  std::optional<std::int64_t>& limit_;
  std::string path_;                  // keys down to the present value
  std::vector<std::size_t> objects_;  // length of path_ where each open object begins
  Member* current_ = nullptr;
  int arrays_ = 0;
  bool at_limit_ = false;
};

}  // namespace

ContestFields read_contest_fields(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  ContestFields fields;
  ContestParser parser(fields);
  nlohmann::json::sax_parse(text, &parser);
  parser.check_complete();
  return fields;
}

}  // namespace alpa
