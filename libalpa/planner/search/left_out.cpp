#include "libalpa/planner/search/left_out.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace alpa {

void LeftOut::note(const std::string& part, int micro_batches) {
  note_place();
  parts_[part].push_back(micro_batches);
}

void LeftOut::note_cut_short() {
  note_place();
  is_cut_short_ = true;
}

void LeftOut::note_place() {
  if (cut_at_.empty()) cut_at_ = clock_.where();
}

std::string LeftOut::end_text() const { return clock_.end() + (cut_at_.empty() ? "" : " in: " + cut_at_); }

std::string LeftOut::text() const {
  std::string text = end_text();
  const char* lead = "; left out: ";
  for (const auto& [part, counts] : parts_) {
    text += lead + part + fmt::format(" with {} micro-batches", fmt::join(counts, ", "));
    lead = "; ";
  }
  return text;
}

}  // namespace alpa
