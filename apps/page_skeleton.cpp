#include "apps/page_skeleton.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

#include "apps/models.h"
#include "libalpa/base/error.h"

namespace alpa {
namespace {

Error broken(const std::string& what) {
  return Error(ErrorKind::input, what, "share/ beside the commands, as it was installed");
}

std::string shared_text(const std::string& name) {
  const std::filesystem::path file = share_folder() / "report" / name;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw broken(fmt::format("'{}' cannot be read", file.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string page_skeleton(const std::vector<std::string>& scripts) {
  const std::string place = "{{script}}";
  std::string page = shared_text("page.html");
  const std::size_t at = page.find(place);
  if (at == std::string::npos) throw broken("the page's frame has no " + place);
  std::string all;
  for (const std::string& script : scripts) all += shared_text(script);
  return page.replace(at, place.size(), all);
}

}  // namespace alpa
