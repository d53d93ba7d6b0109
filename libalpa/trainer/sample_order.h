#pragma once
#include <cstdint>

#include "libalpa/graph/training_options.h"

namespace alpa {

/// The two parts of the data: what is trained on, and its end, kept for evaluation.
enum class Split { training, held_out };

/// Which piece of the data each sample of a run is.
///
/// The data is cut into windows of sequence + 1 tokens, one every `sequence` tokens (the last token of a
/// window is only a target, and the first of the next). Sample k of the run (k = step * batch + position in
/// the batch) is a window that depends on the seed and k only, not on ranks, micro-batches or where a run was
/// resumed. Each epoch sees every training window once, in an order of its own. Held-out windows keep their
/// order.
class SampleOrder {
 public:
  static constexpr double usual_held_out = 0.05;

  /// Of `held_out_fraction` of the windows, the last, nothing is learned: of at least one batch where there
  /// are two, and of all only where it is 1; 0: of none. Throws Error(input) where there are too few tokens
  /// for one sample.
  SampleOrder(std::int64_t tokens, const TrainingOptions& options, double held_out_fraction = usual_held_out);

  /// Of data that has a row for each sample: windows of one row.
  static SampleOrder of_rows(std::int64_t rows, const TrainingOptions& options,
                             double held_out_fraction = usual_held_out);

  std::int64_t windows(Split) const;
  std::int64_t sequence() const { return sequence_; }

  /// Index in the data of the first token (or of the row) of a sample. Samples of the split, which must have
  /// windows, count from 0 on without end.
  std::int64_t window_start(Split, std::int64_t sample) const;

  /// Digest of where the training samples [first, first + count) start: equal for two
  /// runs that saw the same data.
  std::uint64_t samples_hash(std::int64_t first, std::int64_t count) const;

 private:
  SampleOrder(std::int64_t windows, std::int64_t sequence, const TrainingOptions& options,
              double held_out_fraction);

  std::int64_t sequence_, training_windows_, held_out_windows_;
  std::uint64_t key_;
};

}  // namespace alpa
