#include "tests/commands/shown_page.h"

#include <fstream>
#include <iterator>
#include <regex>

#include "tests/h5/temporary_folder.h"

namespace alpa {

std::string shown_page(const std::filesystem::path& page) {
  for (const std::string browser : {"chromium-headless-shell", "chromium"}) {
    if (run_command("which " + browser).status != 0) continue;
    return run_command("timeout 60 " + browser + " --headless --no-sandbox --disable-gpu --dump-dom file://" +
                       page.string())
        .output;
  }
  return "";
}

std::vector<std::vector<std::string>> cells_of(const std::string& dom, const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  std::size_t at = dom.find("<table class=\"" + name + "\">");
  if (at == std::string::npos) return rows;
  const std::string table = dom.substr(at, dom.find("</table>", at) - at);
  for (at = table.find("<tbody>"); (at = table.find("<tr", at)) != std::string::npos; ++at) {
    const std::string row = table.substr(at, table.find("</tr>", at) - at);
    rows.emplace_back();
    const std::regex cell("<td[^>]*>(.*?)</td>");
    for (auto i = std::sregex_iterator(row.begin(), row.end(), cell); i != std::sregex_iterator(); ++i)
      rows.back().push_back((*i)[1]);
  }
  return rows;
}

std::string asks_network(const std::filesystem::path& page) {
  std::ifstream in(page);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const char* outside : {"http://", "https://", "url(", "src=", "@import", "fetch("})
    if (text.find(outside) != std::string::npos) return outside;
  return "";
}

}  // namespace alpa
