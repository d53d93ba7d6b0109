#include "libalpa/kernels/row_groups.h"

#include <algorithm>
#include <cassert>

namespace alpa {
namespace {

/// An operand or a result, and its part of the group at hand: [1 rows ...] of [groups rows ...].
class GroupTile {
 public:
  GroupTile(const TensorType& type, bool has_rows, std::int64_t group) : has_rows_(has_rows), group_(group) {
    if (!has_rows) return;
    room_ = group * type.shape[1];
    const std::int64_t rows = type.shape[0] * type.shape[1];
    row_bytes_ = rows == 0 ? 0 : byte_count(type) / rows;
    tile_.origin.resize(type.shape.size());
    tile_.whole.resize(type.shape.size());
  }

  bool has_rows() const { return has_rows_; }

  /// Of the first rows of a group.
  TensorType type(TensorType all, std::int64_t rows) const {
    if (!has_rows_) return all;
    all.shape[0] = 1;
    all.shape[1] = rows;
    return all;
  }

  /// Of groups after the first.
  std::int64_t alignment() const {
    const std::int64_t bits = kAlignment | room_ * row_bytes_;
    return bits & -bits;
  }

  /// Takes no memory where it was called before.
  void set(const Tile& all, const TensorType& type, std::int64_t group) {
    if (!has_rows_) {
      tile_ = all;
      return;
    }
    const Shape& whole = all.whole.empty() ? type.shape : all.whole;
    std::ranges::copy(whole, tile_.whole.begin());
    std::ranges::fill(tile_.origin, 0);
    std::ranges::copy(all.origin, tile_.origin.begin());
    tile_.whole[0] /= group_;
    tile_.whole[1] = room_;
    tile_.origin[0] = tile_.origin[0] / group_ + group;
    tile_.data = static_cast<std::byte*>(all.data) + group * room_ * row_bytes_;
  }

  const Tile& tile() const { return tile_; }

  void zero_from(std::int64_t row, Stream& stream) const {
    if (row < room_)
      stream.fill_zero(static_cast<std::byte*>(tile_.data) + row * row_bytes_, (room_ - row) * row_bytes_);
  }

 private:
  Tile tile_;
  bool has_rows_;
  std::int64_t group_, room_ = 0, row_bytes_ = 0;
};

class RowGroupKernel final : public Kernel {
 public:
  RowGroupKernel(const OpDef& op, const KernelShape& shape, const VertexRows& rows, DeviceKind kind,
                 const std::function<std::unique_ptr<Kernel>(const KernelShape&)>& make)
      : shape_(shape), group_(rows.group), operand_with_rows_(static_cast<std::size_t>(rows.operand)) {
    const Attributes attributes = without_vertex_rows(shape.attributes);
    const ShardingRule rule = rule_of(op, {shape.operands, attributes});
    const RowFactors factors = row_factors(rule, rows.operand).value();
    for (std::size_t i = 0; i < shape.operands.size(); ++i)
      operands_.emplace_back(shape.operands[i], factors.lead(rule.operands[i]), group_);
    for (std::size_t r = 0; r < shape.results.size(); ++r)
      results_.emplace_back(shape.results[r], factors.lead(rule.results[r]), group_);
    operand_tiles_.resize(operands_.size());
    result_tiles_.resize(results_.size());
    sums_rows_ = !results_[0].has_rows();
    const Shape& of = shape.operands[static_cast<std::size_t>(rows.operand)].shape;
    groups_ = of[0] / group_;
    const std::int64_t room = group_ * of[1];
    between_ = std::max<std::int64_t>(1, (room + kRowCounts - 1) / kRowCounts);
    for (std::int64_t count = between_; count - between_ < room; count += between_) {
      counts_.push_back(std::min(count, room));
      KernelShape own{{}, {}, attributes, shape.alignment};
      for (const auto* tiles : {&operands_, &results_})
        for (const GroupTile& tile : *tiles) own.alignment = std::min(own.alignment, tile.alignment());
      for (std::size_t i = 0; i < shape.operands.size(); ++i)
        own.operands.push_back(operands_[i].type(shape.operands[i], counts_.back()));
      for (std::size_t r = 0; r < shape.results.size(); ++r)
        own.results.push_back(results_[r].type(shape.results[r], counts_.back()));
      assert(workspace_of(op, {own.operands, attributes}, kind) <=
             workspace_of(op, {shape.operands, shape.attributes}, kind));
      kernels_.push_back(make(own));
    }
  }

  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    RunPoint of_groups = point;
    of_groups.first_sample /= group_;
    const Shape& origin = operands[operand_with_rows_].origin;
    const std::int64_t first = of_groups.first_sample + (origin.empty() ? 0 : origin[0] / group_);
    for (std::int64_t g = 0; g < groups_; ++g) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        operands_[i].set(operands[i], shape_.operands[i], g);
        operand_tiles_[i] = operands_[i].tile();
      }
      for (std::size_t r = 0; r < results.size(); ++r) {
        results_[r].set(results[r], shape_.results[r], g);
        result_tiles_[r] = results_[r].tile();
      }
      const std::size_t k = kernel_for(point, first + g);
      kernels_[k]->run(stream, operand_tiles_, result_tiles_, workspace, accumulate || (sums_rows_ && g > 0),
                       of_groups);
      if (accumulate) continue;
      for (const GroupTile& result : results_)
        if (result.has_rows()) result.zero_from(counts_[k], stream);
    }
  }

 private:
  std::size_t kernel_for(const RunPoint& point, std::int64_t group) const {
    if (point.group_rows.empty()) return counts_.size() - 1;
    const std::int64_t rows = point.group_rows[static_cast<std::size_t>(group)];
    return std::min(static_cast<std::size_t>(std::max<std::int64_t>(rows - 1, 0) / between_),
                    counts_.size() - 1);
  }

  KernelShape shape_;
  std::int64_t group_, groups_ = 0, between_ = 1;
  std::size_t operand_with_rows_;
  bool sums_rows_ = false;
  std::vector<std::int64_t> counts_;  ///< of rows, ascending
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<GroupTile> operands_, results_;
  std::vector<Tile> operand_tiles_, result_tiles_;
};

}  // namespace

std::unique_ptr<Kernel> make_row_group_kernel(
    const OpDef& op, const KernelShape& shape, const VertexRows& rows, DeviceKind kind,
    const std::function<std::unique_ptr<Kernel>(const KernelShape&)>& make) {
  return std::make_unique<RowGroupKernel>(op, shape, rows, kind, make);
}

}  // namespace alpa
