#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/dataset/convert_settings.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Writes the HDF5 form of a source that training reads (open_tokens(), open_arrays(), open_graphs()),
/// streaming: /tokens, in the narrowest type of 8, 16 or 32 bits; a dataset of samples and one of their
/// labels; or the columns of graphs (open_graphs()) with their statistics and words. Numbers become f32,
/// (number - subtract) / divide; bytes stay bytes, which training divides by 255, unless either is given.
///
/// Samples are shuffled (by `seed`, the same each time), since training keeps the last rows for evaluation
/// and sources often are sorted; tokens keep their order. Of both, the last are held out.
///
/// Throws Error(input), Error(usage) for settings that do not fit the source; both files appear whole or not
/// at all.
void convert(const ConvertSettings& settings, const Provenance& provenance, Log& log);

/// The files that convert() may read: the source, its Megatron pair, the labels of IDX images.
std::vector<std::filesystem::path> files_read(const ConvertSettings& settings);

}  // namespace alpa
