#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace alpa {

/// What decides which sample of a run is which piece of which data: data, split and order. It is part of a
/// checkpoint, as a run that goes on counts its samples on.
struct DataIdentity {
  std::string content = {};     ///< content_fingerprint() of the data; "": not known
  std::int64_t length = 0;      ///< of the data: tokens, or rows
  std::string evaluation = {};  ///< content_fingerprint() of the evaluation data; "": the end of the data
  std::int64_t windows = 0;     ///< that are trained on, see SampleOrder
  std::int64_t sequence = 0;    ///< tokens of a window; 1: rows
  std::int64_t seed = 0;        ///< of the shuffling
  std::string order = {};       ///< digest of where the first samples start
  bool operator==(const DataIdentity&) const = default;
};

/// What of the data, its split and the order of its samples is not as it was `saved`, one line each ("\n
/// order: ..."); "" where a run goes on with what it would have seen. Of a checkpoint that does not say what
/// it was trained on, only the length is known.
std::string data_changes(const DataIdentity& saved, const DataIdentity& here);

/// Throws Error(input) that names what has changed since the checkpoint was saved, after `samples` samples;
/// where that is `accepted` it is in the result, a warning that says with which sample the run goes on. "":
/// nothing has changed. A checkpoint of imported weights has seen no samples, and goes with any data.
[[nodiscard]] std::string check_same_data(const std::filesystem::path& checkpoint, std::int64_t samples,
                                          const DataIdentity& saved, const DataIdentity& here, bool accepted);

}  // namespace alpa
