#include "libalpa/report/page.h"

#include "libalpa/base/error.h"

namespace alpa {
namespace {

/// Text of JSON holds '<' in strings alone; as an escape it cannot end the block that it stands in.
std::string for_script(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

}  // namespace

std::string page_with(const std::string& skeleton, const JsonObject& data) {
  const std::string place = "{{data}}";
  const std::size_t at = skeleton.find(place);
  if (at == std::string::npos)
    throw Error(ErrorKind::input, "the page's skeleton has no " + place, "share/ as it was installed");
  std::string page = skeleton;
  return page.replace(at, place.size(), for_script(data.text()));
}

}  // namespace alpa
