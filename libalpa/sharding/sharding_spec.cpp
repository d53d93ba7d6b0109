#include "libalpa/sharding/sharding_spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

std::int64_t split_of(const std::vector<int>& axes, const MeshShape& mesh) {
  std::int64_t parts = 1;
  for (const int axis : axes) parts *= mesh[axis];
  return parts;
}

std::uint32_t used_axes(const ShardingSpec& spec) {
  std::uint32_t used = spec.partial_sum | spec.partial_max;
  for (const auto& axes : spec.axes)
    for (const int axis : axes) used |= 1u << axis;
  return used;
}

}  // namespace

ShardingSpec replicated_spec(std::size_t rank) { return {std::vector<std::vector<int>>(rank), 0, 0}; }

bool splits_along(const ShardingSpec& spec, int axis) {
  return std::ranges::any_of(
      spec.axes, [&](const std::vector<int>& axes) { return std::ranges::find(axes, axis) != axes.end(); });
}

ShardingSpec without_terms(ShardingSpec spec) {
  spec.partial_sum = spec.partial_max = 0;
  return spec;
}

bool fits(const Shape& whole, const ShardingSpec& spec, const MeshShape& mesh) {
  if (spec.axes.size() != whole.size() || (spec.partial_sum & spec.partial_max)) return false;
  std::uint32_t used = spec.partial_sum | spec.partial_max;
  if (used >> mesh.size()) return false;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    for (const int axis : spec.axes[d]) {
      if (axis < 0 || axis >= static_cast<int>(mesh.size()) || (used >> axis & 1)) return false;
      used |= 1u << axis;
    }
    if (whole[d] % split_of(spec.axes[d], mesh) != 0) return false;
  }
  return true;
}

Shape tile_shape(const Shape& whole, const ShardingSpec& spec, const MeshShape& mesh) {
  if (!fits(whole, spec, mesh))
    throw Error(ErrorKind::input, fmt::format("a tensor of {} does not split as {} on a mesh of {}",
                                              shape_text(whole), spec_text(spec), mesh_text(mesh)));
  Shape tile = whole;
  for (std::size_t d = 0; d < whole.size(); ++d) tile[d] /= split_of(spec.axes[d], mesh);
  return tile;
}

TensorType tile_type(const TensorType& whole, const ShardingSpec& spec, const MeshShape& mesh) {
  return {whole.dtype, tile_shape(whole.shape, spec, mesh)};
}

Shape tile_origin(const Shape& whole, const ShardingSpec& spec, const MeshShape& mesh,
                  const std::vector<int>& coordinate) {
  const Shape tile = tile_shape(whole, spec, mesh);
  Shape origin(whole.size(), 0);
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::int64_t index = 0;
    for (const int axis : spec.axes[d]) index = index * mesh[axis] + coordinate[axis];
    origin[d] = index * tile[d];
  }
  return origin;
}

int replica_count(const ShardingSpec& spec, const MeshShape& mesh) {
  const std::uint32_t used = used_axes(spec);
  int copies = 1;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (!(used >> axis & 1)) copies *= mesh[axis];
  return copies;
}

int term_count(const ShardingSpec& spec, const MeshShape& mesh) {
  int terms = 1;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (spec.partial_sum >> axis & 1) terms *= mesh[axis];
  return terms;
}

int term_at(const ShardingSpec& spec, const MeshShape& mesh, const std::vector<int>& coordinate) {
  int term = 0;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (spec.partial_sum >> axis & 1) term = term * mesh[axis] + coordinate[axis];
  return term;
}

int different_tiles(const ShardingSpec& spec, const MeshShape& mesh, int devices) {
  std::set<int> tiles;
  for (int device = 0; device < devices; ++device) {
    int tile = 0, left = device;
    for (int axis = static_cast<int>(mesh.size()) - 1; axis >= 0; left /= mesh[axis--])
      if (splits_along(spec, axis)) tile = tile * mesh[axis] + left % mesh[axis];
    tiles.insert(tile);
  }
  return static_cast<int>(tiles.size());
}

std::string spec_text(const ShardingSpec& spec) {
  std::string text;
  for (const auto& axes : spec.axes) {
    text += axes.empty() ? "R" : "S";
    for (const int axis : axes) text += std::to_string(axis);
  }
  if (spec.axes.empty()) text = "-";
  for (int axis = 0; axis < 32; ++axis) {
    if (spec.partial_sum >> axis & 1) text += fmt::format("+sum{}", axis);
    if (spec.partial_max >> axis & 1) text += fmt::format("+max{}", axis);
  }
  return text;
}

ShardingSpec parse_spec(const std::string& text) {
  ShardingSpec spec;
  const auto refuse = [&] {
    return Error(ErrorKind::input, fmt::format("'{}' is not a sharding spec", text),
                 "as in RS0, S01R, RR+sum1");
  };
  std::size_t at = 0;
  const auto digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  if (text.starts_with("-")) at = 1;
  for (; at < text.size() && text[at] != '+';) {
    const char kind = text[at++];
    if (kind != 'R' && kind != 'S') throw refuse();
    spec.axes.emplace_back();
    while (digit()) spec.axes.back().push_back(text[at++] - '0');
    if ((kind == 'R') != spec.axes.back().empty()) throw refuse();
  }
  while (at < text.size()) {
    const std::string word = text.substr(at, 4);
    at += 4;
    if ((word != "+sum" && word != "+max") || !digit()) throw refuse();
    (word == "+sum" ? spec.partial_sum : spec.partial_max) |= 1u << (text[at++] - '0');
  }
  return spec;
}

std::vector<ShardingSpec> all_specs(const Shape& whole, const MeshShape& mesh) {
  std::vector<ShardingSpec> specs{replicated_spec(whole.size())};
  for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis) {
    if (mesh[axis] == 1) continue;
    const std::size_t known = specs.size();
    for (std::size_t s = 0; s < known; ++s)
      for (std::size_t d = 0; d < whole.size(); ++d) {
        ShardingSpec spec = specs[s];
        spec.axes[d].push_back(axis);
        if (fits(whole, spec, mesh)) specs.push_back(std::move(spec));
      }
  }
  return specs;
}

}  // namespace alpa
