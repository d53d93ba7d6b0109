#include "apps/manual_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace alpa {
namespace {

constexpr std::size_t kWidestLine = 76;  // of the source, for those who read it

/// What roff would take for something of its own stands for itself.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text)
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
  return safe;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

/// Lines of escaped text that roff fills, or joins where `ending` says so.
std::string wrapped(const std::string& text, const std::string& ending = "") {
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidestLine) {
      lines += line + ending + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    if (line.empty() && (word[0] == '.' || word[0] == '\'')) line = "\\&";  // no macro
    line += word;
  }
  return lines + line + "\n";
}

/// A line, which roff may break at "\:", on as many lines of the source as it takes.
std::string continued(const std::string& text) {
  std::string lines, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\\:", at + 1), text.size());
    if (line.size() + end - at > kWidestLine) {
      lines += line + "\\\n";
      line.clear();
    }
    line += text.substr(at, end - at);
    at = end;
  }
  return lines + line + "\n";
}

/// Something and, indented, what is said of it.
std::string item(const std::string& head, const std::string& text) {
  return ".TP\n" + continued(head) + (text.empty() ? "\\&\n" : wrapped(escaped(text)));
}

std::string title(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".SH \"{}\"\n", escaped(text));
}

std::string synopsis(const NamedCommand& named) {
  std::string line = bold(named.full_name);
  for (const Setting& setting : named.command->settings())
    if (setting.is_argument())
      line += " " + italic(setting.name) + (setting.takes_several ? " ..." : "");
    else if (setting.is_required)
      line += " " + bold(setting.name) + " " + italic(setting.value_name);
  return wrapped(line + " [" + italic("options") + "]");
}

std::string settings(const Command& command) {
  std::string text;
  for (const Setting& setting : command.settings()) {
    std::string head = setting.is_argument() ? italic(setting.name) : bold(setting.name);
    if (setting.name == "--help") head = bold("-h") + ", " + head;
    if (!setting.is_argument() && !setting.is_flag()) {
      // Alternatives may be more than a line has room for.
      std::string form = italic(setting.value_name);
      for (std::size_t at = 0; (at = form.find('|', at)) != std::string::npos; at += 3)
        form.insert(at, "\\:");
      head += " " + form;
    }
    std::string said = setting.help;
    if (setting.is_required && !setting.is_argument()) said += " (must be given)";
    if (!setting.default_value.empty()) said += fmt::format(" [{}]", setting.default_value);
    text += item(head, said);
    if (setting.words.empty()) continue;
    text += ".RS\n";
    for (const std::string& word : setting.words) {
      const std::size_t end = word.find(' ');
      text += item(bold(word.substr(0, end)), word.substr(std::min(end, word.size())));
    }
    text += ".RE\n";
  }
  return text;
}

std::string statuses(const Command& command) {
  std::string text;
  for (const auto& [status, meaning] : command.statuses()) text += item(std::to_string(status), meaning);
  return text;
}

std::string examples(const Command& command) {
  std::string text;
  for (const auto& [line, what] : command.examples()) {
    if (!text.empty()) text += ".PP\n";
    text += wrapped(escaped(what) + ":") + ".RS 4\n.nf\n" + wrapped(bold(line), " \\") + ".fi\n.RE\n";
  }
  return text;
}

}  // namespace

std::string manual_page(const std::vector<NamedCommand>& commands, const std::string& version,
                        const std::string& date) {
  const NamedCommand& main = commands.front();
  std::string upper = main.full_name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string page = fmt::format(".\\\" {} --help-as man\n.TH {} 1 {} \"{}\" \"Alpa for Slurm\"\n",
                                 main.full_name, upper, date, version);
  page += title("name") + wrapped(escaped(main.full_name) + " \\- " + escaped(main.command->purpose()));
  page += title("synopsis");
  for (const NamedCommand& command : commands) page += (&command == &main ? "" : ".br\n") + synopsis(command);
  if (commands.size() > 1) page += title("commands");
  for (const NamedCommand& command : commands)
    if (&command != &main) page += item(bold(command.command->name()), command.command->purpose());
  page += title("options") + "Defaults are in brackets.\n" + settings(*main.command);
  page += title("exit status") + statuses(*main.command);
  if (!main.command->examples().empty()) page += title("examples") + examples(*main.command);
  for (const NamedCommand& command : commands) {
    if (&command == &main) continue;
    page += title(command.full_name) + wrapped(escaped(command.command->purpose()));
    page += ".PP\n" + synopsis(command) + settings(*command.command);
    page += ".SS Exit status\n" + statuses(*command.command);
    if (!command.command->examples().empty()) page += ".SS Examples\n" + examples(*command.command);
  }
  return page;
}

}  // namespace alpa
