#include "libalpa/h5/tensor_region.h"

#include <fmt/core.h>

#include <algorithm>

namespace alpa {

std::string region_fault(const TensorRegion& region, const Shape& shape) {
  bool inside = region.offset.size() == shape.size() && region.count.size() == shape.size();
  for (std::size_t i = 0; inside && i < shape.size(); ++i)
    inside = region.offset[i] >= 0 && region.count[i] >= 0 && region.count[i] <= shape[i] &&
             region.offset[i] <= shape[i] - region.count[i];
  if (inside) return {};
  return fmt::format("region {} at offset {} is not inside {}", shape_text(region.count),
                     shape_text(region.offset), shape_text(shape));
}

std::vector<TensorRegion> pieces_of(const TensorRegion& region, std::int64_t element_bytes,
                                    std::int64_t most_bytes) {
  // The outermost dimension whose single steps are small enough is cut into runs, those before it into single
  // steps.
  std::size_t cut = 0;
  std::int64_t step_bytes = element_count(region.count) * element_bytes;
  if (step_bytes <= most_bytes) return {region};
  while (cut < region.count.size()) {
    step_bytes /= region.count[cut];
    if (step_bytes <= most_bytes) break;
    ++cut;
  }
  cut = std::min(cut, region.count.size() - 1);
  const std::int64_t run = std::clamp<std::int64_t>(most_bytes / step_bytes, 1, region.count[cut]);

  std::vector<TensorRegion> pieces;
  Shape at(cut + 1, 0);
  while (at[0] < region.count[0]) {
    TensorRegion piece = region;
    for (std::size_t i = 0; i <= cut; ++i) {
      piece.offset[i] += at[i];
      piece.count[i] = i < cut ? 1 : std::min(run, region.count[i] - at[i]);
    }
    pieces.push_back(std::move(piece));
    at[cut] += run;
    for (std::size_t i = cut; i > 0 && at[i] >= region.count[i]; --i) {
      at[i] = 0;
      ++at[i - 1];
    }
  }
  return pieces;
}

Shape stored_extent(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

H5Space selection(const TensorRegion& region, const Shape& shape) {
  H5Space space = simple_space(stored_extent(shape));
  if (shape.empty()) return space;
  const std::vector<hsize_t> offset(region.offset.begin(), region.offset.end());
  const std::vector<hsize_t> count(region.count.begin(), region.count.end());
  checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, offset.data(), nullptr, count.data(), nullptr),
          "selecting a region");
  return space;
}

}  // namespace alpa
