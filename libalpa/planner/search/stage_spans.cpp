#include "libalpa/planner/search/stage_spans.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace alpa {

StageSpans::StageSpans(const LayerClasses& classes, std::vector<int> cuts, const std::vector<int>& sizes,
                       int devices, const std::vector<int>& needed)
    : cuts_(std::move(cuts)), sizes_(sizes), needed_(needed), devices_(devices) {
  kind_.assign(cuts_.size() * cuts_.size() * sizes_.size(), -1);
  std::map<std::tuple<std::vector<int>, bool, bool, int>, int> known;
  for (int first = 0; first < units(); ++first)
    for (int end = first + 1; end <= units(); ++end) {
      const std::vector<int> layers{classes.of_layer.begin() + cuts_[first],
                                    classes.of_layer.begin() + cuts_[end]};
      for (const int size : sizes_) {
        const StageSpan span{first, end, size};
        if (!has(span)) continue;
        const auto [kind, is_new] =
            known.try_emplace({layers, first == 0, end == units(), size}, static_cast<int>(known.size()));
        if (is_new) of_kind_.emplace_back();
        of_kind_[kind->second].push_back(span);
        kind_[place(span)] = kind->second;
        all_.push_back(span);
      }
    }
}

int StageSpans::kind_of(const StageSpan& span) const { return kind_[place(span)]; }

std::size_t StageSpans::place(const StageSpan& span) const {
  const auto size = std::ranges::find(sizes_, span.devices) - sizes_.begin();
  return (static_cast<std::size_t>(span.first_unit) * cuts_.size() +
          static_cast<std::size_t>(span.end_unit)) *
             sizes_.size() +
         static_cast<std::size_t>(size);
}

}  // namespace alpa
