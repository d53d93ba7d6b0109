#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

enum class SourceKind { automatic, text, tokens, idx, images, csv };
enum class RowOrder { shuffled, kept };

/// What becomes of a source of tokens or labelled samples.
struct ConvertSettings {
  std::filesystem::path source, out;
  SourceKind from = SourceKind::automatic;

  double hold_out = 0;                  ///< share of the rows that goes to a file of its own
  std::filesystem::path hold_out_file;  ///< "": `out` with "-held-out" before its ending

  // Samples only.
  std::filesystem::path labels;   ///< of IDX images
  std::int64_t label_column = 0;  ///< of a CSV, from 1 on; 0: the last
  std::string shape;              ///< of one sample, e.g. "8x8x1"; "": as the source has it. Images of
                      ///< a folder are scaled and cut to a shape of three extents, the last 1 or 3
  double subtract = 0, divide = 0;
  std::string image_name = "images", label_name = "labels";
  RowOrder order = RowOrder::shuffled;
  std::int64_t seed = 0;
};

/// Writes the HDF5 form of a source that training reads (open_tokens(), open_arrays()), streaming: /tokens,
/// in the narrowest type of 8, 16 or 32 bits; or a dataset of samples and one of their labels. Numbers become
/// f32, (number - subtract) / divide; bytes stay bytes, which training divides by 255, unless either is
/// given.
///
/// Samples are shuffled (by `seed`, the same each time), since training keeps the last rows for evaluation
/// and sources often are sorted; tokens keep their order. Of both, the last are held out.
///
/// Throws Error(input), Error(usage) for settings that do not fit the source; both files appear whole or not
/// at all.
void convert(const ConvertSettings& settings, const Provenance& provenance, Log& log);

/// The files that convert() may read: the source, its Megatron pair, the labels of IDX images.
std::vector<std::filesystem::path> files_read(const ConvertSettings& settings);

/// Where held-out rows go.
std::filesystem::path hold_out_file(const ConvertSettings& settings);

}  // namespace alpa
