#include "libalpa/plan/facts/legend.h"

#include <fmt/core.h>

#include <cctype>

namespace alpa {
namespace {

constexpr LegendEntry kLegend[] = {
    {"DP4", "samples are split over 4 devices (data parallelism)"},
    {"TP4", "tensors of operators are split (tensor parallelism)"},
    {"SP4", "the sequence is split; SP alone: between the operators that TP splits"},
    {"CP4", "the sequence is split, in attention too (context parallelism)"},
    {"EP4", "experts are split (expert parallelism)"},
    {"PP4", "layers are split over 4 meshes (pipeline parallelism)"},
    {"ZeRO-1",
     "of the optimizer's states each device of DP has a part; ZeRO-2: of gradients too; ZeRO-3: of "
     "parameters too"},
    {"copies2", "2 devices do the same work"},
    {"mesh 2x4", "devices as a grid: axis 0 of 2, axis 1 of 4"},
    {"RS0",
     "layout of two dimensions: the first whole on every device, the second split over mesh axis 0 (S01: "
     "over axes 0 and 1)",
     "S<axes>"},
    {"+sum0", "terms along axis 0 are still to be added up"},
    {"f32[8x16]", "element type and extents of a tensor", "S<axes>"},
    {"micro-batch", "samples that go through the stages together"},
    {"collectives", "communication within a stage"},
    {"transfers", "communication between stages, or with the host's memory"},
    {"idle", "waiting for other stages (the bubble)"},
    {"waiting", "for other stages (the bubble)"},
    {"alongside computation", "hidden: communication that takes no time of its own"},
    {"work", "compute, and communication that is not hidden behind it"},
    {"binds", "what takes the most time of the stage that works longest"},
    {"bound", "no plan that it covers takes less"},
    {"in flight", "micro-batches of which activations are held at once"},
    {"±", "standard deviation"},
    {"GiB", "2^30 bytes (GB: 10^9)"},
    {"MiB", "2^20 bytes"},
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether `text` goes on with the term, a number for each number in it.
bool begins_with(std::string_view text, std::string_view term) {
  std::size_t t = 0;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (t == text.size()) return false;
    if (!is_digit(term[i])) {
      if (text[t++] != term[i]) return false;
      continue;
    }
    if (!is_digit(text[t])) return false;
    while (t < text.size() && is_digit(text[t])) ++t;
    while (i + 1 < term.size() && is_digit(term[i + 1])) ++i;
  }
  if (text.substr(t).starts_with("es")) ++t;  // of several
  if (text.substr(t).starts_with("s")) ++t;
  return t == text.size() || !is_letter(text[t]) || !is_letter(term.back());
}

bool stands_in(std::string_view text, std::string_view term) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if ((at == 0 || !is_letter(text[at - 1]) || !is_letter(term.front())) &&
        begins_with(text.substr(at), term))
      return true;
  return false;
}

}  // namespace

std::span<const LegendEntry> legend() { return kLegend; }

std::string legend_of(std::string_view printed) {
  std::string words;
  for (const LegendEntry& entry : kLegend)
    if (stands_in(printed, entry.found_as.empty() ? entry.term : entry.found_as))
      words += fmt::format("{} {} = {}", words.empty() ? "legend:" : ";", entry.term, entry.meaning);
  if (words.empty()) return "";
  constexpr std::size_t width = 110;
  for (std::size_t begin = 0; words.size() - begin > width;) {
    const std::size_t end = words.rfind(' ', begin + width);
    words[end] = '\n';
    begin = end + 1;
  }
  return "\n" + words + "\n";
}

JsonArray legend_json() {
  JsonArray entries;
  for (const LegendEntry& entry : kLegend)
    entries.add(JsonObject().set("term", entry.term).set("meaning", entry.meaning));
  return entries;
}

std::string legend_table() {
  std::string text = "| | |\n|---|---|\n";
  for (const LegendEntry& entry : kLegend) text += fmt::format("| `{}` | {} |\n", entry.term, entry.meaning);
  return text;
}

}  // namespace alpa
