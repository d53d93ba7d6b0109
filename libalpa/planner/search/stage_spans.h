#pragma once
#include <vector>

#include "libalpa/planner/stage/layer_classes.h"

namespace alpa {

/// Consecutive layers on so many devices: what may be a stage. Units are what lies between two cuts.
struct StageSpan {
  int first_unit = 0, end_unit = 0;
  int devices = 0;
  bool operator==(const StageSpan&) const = default;
};

/// All spans that a pipeline on all devices may have, and which of them are the same. Those of equal layers
/// on as many devices are of one kind, but for whether they are the ends of the model.
class StageSpans {
 public:
  /// `cuts`: layers that stages may begin and end at, the first and the last one's end among them; `needed`:
  /// those that they do begin at.
  StageSpans(const LayerClasses&, std::vector<int> cuts, const std::vector<int>& sizes, int devices,
             const std::vector<int>& needed = {});

  int units() const { return static_cast<int>(cuts_.size()) - 1; }
  int devices() const { return devices_; }
  int first_layer(const StageSpan& span) const { return cuts_[span.first_unit]; }
  int end_layer(const StageSpan& span) const { return cuts_[span.end_unit]; }

  const std::vector<StageSpan>& all() const { return all_; }
  int kind_of(const StageSpan&) const;
  const std::vector<StageSpan>& of_kind(int kind) const { return of_kind_[kind]; }
  int kinds() const { return static_cast<int>(of_kind_.size()); }

  /// All layers are on all devices, and nothing else is; no needed cut is inside.
  bool has(const StageSpan& span) const {
    for (const int cut : needed_)
      if (first_layer(span) < cut && cut < end_layer(span)) return false;
    return (span.first_unit == 0 && span.end_unit == units()) == (span.devices == devices_);
  }

 private:
  std::size_t place(const StageSpan& span) const;

  std::vector<int> cuts_, sizes_, needed_;
  int devices_;
  std::vector<StageSpan> all_;
  std::vector<int> kind_;  ///< [place]
  std::vector<std::vector<StageSpan>> of_kind_;
};

}  // namespace alpa
