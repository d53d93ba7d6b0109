#include "libalpa/dataset/json_field.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace alpa {
namespace {

/// Takes a line apart as it is read. false ends the reading.
class FieldHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FieldHandler(const std::string& field) : field_(field) {}

  JsonField result() && {
    if (result_.problem.empty() && !found_) result_.problem = fmt::format("no field '{}'", field_);
    return std::move(result_);
  }

  bool start_object(std::size_t) override {
    if (depth_ == 0) {
      depth_ = 1;
      return true;
    }
    ++depth_;
    return depth_ > 2 || other("an object");
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return other("an array");
    ++depth_;
    return depth_ > 2 || other("an array");
  }
  bool end_array() override { return --depth_ >= 0; }

  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    is_field_ = name == field_;
    if (is_field_ && std::exchange(found_, true)) return problem(fmt::format("field '{}' twice", field_));
    return true;
  }

  bool string(std::string& text) override {
    if (depth_ == 0) return other("a text");
    if (depth_ == 1 && is_field_) result_.text = std::move(text);
    return true;
  }

  bool null() override { return number_or("null"); }
  bool boolean(bool) override { return number_or("a truth value"); }
  bool number_integer(std::int64_t) override { return number_or("a number"); }
  bool number_unsigned(std::uint64_t) override { return number_or("a number"); }
  bool number_float(double, const std::string&) override { return number_or("a number"); }
  bool binary(nlohmann::json::binary_t&) override { return number_or("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return problem(fmt::format("no JSON from its byte {} on", position));
  }

 private:
  bool problem(const std::string& what) {
    result_.problem = what;
    return false;
  }

  /// A value that is no text; `depth_` counts it where it is an object or array.
  bool other(const char* what) {
    if (depth_ == 0) return problem(fmt::format("{}, no object", what));
    return is_field_ ? problem(fmt::format("field '{}' is {}, no text", field_, what)) : true;
  }

  bool number_or(const char* what) { return depth_ > 1 || other(what); }

  const std::string& field_;
  JsonField result_;
  int depth_ = 0;
  bool is_field_ = false, found_ = false;
};

}  // namespace

JsonField json_field(std::string_view line, const std::string& field) {
  FieldHandler handler(field);
  nlohmann::json::sax_parse(line.begin(), line.end(), &handler);
  return std::move(handler).result();
}

}  // namespace alpa
