#include "libalpa/profiler/sample_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>

#include "libalpa/base/error.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/units.h"
#include "libalpa/profiler/structure_of_rounds.h"

namespace alpa {
namespace {

constexpr std::int64_t kAlign = 256;
constexpr std::int64_t kPatternElements = 1 << 20;  // repeated through a region
constexpr std::uint64_t kKey = 0x616c7061;

std::int64_t aligned(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
}

/// In [1/16, 1), or in that and its negative.
float random_value(std::int64_t index, bool is_positive) {
  const auto at = static_cast<std::uint64_t>(index);
  const float magnitude = 1.0f / 16 + 15.0f / 16 * philox_uniform_at(kKey, 0, at);
  return is_positive || philox_uniform_at(kKey, 2, at) < 0.5f ? magnitude : -magnitude;
}

std::vector<char> random_pattern(DType dtype, bool is_positive) {
  std::vector<char> bytes(static_cast<std::size_t>(kPatternElements * dtype_bytes(dtype)));
  for_float_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < kPatternElements; ++i)
      reinterpret_cast<T*>(bytes.data())[i] = from_float<T>(random_value(i, is_positive));
  });
  return bytes;
}

/// The values that an operand of indices may take, global: [first, first + count).
struct IndexRange {
  std::int64_t first = 0, count = 1;
};

/// What an index picks from are the factors that the operand of indices lacks and the fewest tensors have:
/// the vocabulary of an embedding or of a loss, the experts and their places of a dispatch. Tiles of them are
/// taken to be hit by every index, which is what the busiest device sees. Lengths are whole and starts the
/// first: how much of the data is padding, and where its documents end, is not known here.
IndexRange index_range(const OperatorCase& each, std::size_t operand) {
  if (!each.op->starts_of.empty()) return {};
  const ShardingRule rule = rule_of(*each.op, each.call());
  for (const Factor& factor : rule.factors)
    if (factor.name == each.op->lengths_of) return {factor.size, 1};
  std::vector<int> tensors(rule.factors.size(), 0);
  std::vector<std::int64_t> origin(rule.factors.size(), 0);
  const auto count = [&](const std::vector<std::vector<DimensionFactors>>& all,
                         const std::vector<TilePlace>& places) {
    for (std::size_t t = 0; t < all.size(); ++t)
      for (std::size_t d = 0; d < all[t].size(); ++d)
        for (const int factor : all[t][d]) {
          ++tensors[factor];
          if (all[t][d].size() == 1 && !places[t].origin.empty()) origin[factor] = places[t].origin[d];
        }
  };
  count(rule.operands, each.operand_places);
  count(rule.results, each.result_places);
  for (const DimensionFactors& dimension : rule.operands[operand])
    for (const int factor : dimension) tensors[factor] = std::numeric_limits<int>::max();
  IndexRange range;
  if (tensors.empty()) return range;
  const int fewest = *std::min_element(tensors.begin(), tensors.end());
  for (std::size_t f = 0; f < tensors.size() && fewest < std::numeric_limits<int>::max(); ++f) {
    if (tensors[f] != fewest) continue;
    range.first = range.first * rule.factors[f].size + origin[f];
    range.count *= rule.factors[f].size;
  }
  return range;
}

std::vector<std::int32_t> random_indices(const IndexRange& range, std::int64_t count) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < values.size(); ++k) {
    const float place = philox_uniform_at(kKey, 1, k) * static_cast<float>(range.count);
    values[k] = static_cast<std::int32_t>(range.first + static_cast<std::int64_t>(place) % range.count);
  }
  return values;
}

std::int64_t held_by(const std::unique_ptr<DeviceMemory>& memory) { return memory ? memory->bytes() : 0; }

bool overwrites(const OperatorCase& each) {
  const auto& overwritten = each.op->overwrites;
  return std::any_of(overwritten.begin(), overwritten.end(), [](int operand) { return operand >= 0; });
}

/// Where the regions and needs of operands have those of that type.
std::size_t index_of(DType dtype, const OperatorCase& each) {
  return (dtype == DType::f32 ? 0u : dtype == DType::bf16 ? 1u : 2u) + (overwrites(each) ? 3u : 0u);
}

Tile tile(void* data, const TilePlace& place) { return {data, place.origin, place.whole}; }

}  // namespace

SampleMemory::SampleMemory(Device& device, Stream& stream, std::int64_t cold_bytes, std::int64_t most_bytes)
    : device_(device), stream_(stream), cold_bytes_(cold_bytes), most_bytes_(most_bytes) {}

void SampleMemory::check_fits(std::int64_t bytes) const {
  if (bytes > most_bytes_)
    throw Error(ErrorKind::run_time, fmt::format("the sample takes {}, and a device has {}",
                                                 bytes_text(bytes), bytes_text(most_bytes_)));
}

std::int64_t SampleMemory::held_bytes() const {
  std::int64_t bytes = held_by(results_.memory) + held_by(workspace_);
  for (const Region& region : operands_) bytes += held_by(region.memory);
  return bytes;
}

void SampleMemory::make_room(const Needs& needs) {
  const auto after = [this](const Region& region, std::int64_t bytes) {
    return std::max(held_by(region.memory), bytes > 0 ? std::max(bytes, cold_bytes_) : 0);
  };
  std::int64_t bytes = after(results_, needs.results) + std::max(held_by(workspace_), needs.workspace);
  for (std::size_t i = 0; i < operands_.size(); ++i) bytes += after(operands_[i], needs.operands[i]);
  if (bytes <= most_bytes_) return;
  for (Region& region : operands_) region.memory.reset();
  results_.memory.reset();
  workspace_.reset();
}

void SampleMemory::cut(Region& region, std::int64_t bytes_each) {
  if (bytes_each == 0) {
    region.sets = 1;
    return;
  }
  const std::int64_t least = std::max(bytes_each, cold_bytes_);
  if (!region.memory || region.memory->bytes() < least) {
    region.memory.reset();
    region.memory = device_.allocate(least);
    fill(region);
  }
  const std::int64_t bytes = region.memory->bytes();
  region.sets = static_cast<int>(std::clamp<std::int64_t>(bytes / bytes_each, 1, kMostSets));
  region.stride = bytes / region.sets / kAlign * kAlign;
}

char* SampleMemory::place(const Region& region, int set) const {
  return region.memory ? static_cast<char*>(region.memory->data()) + set % region.sets * region.stride
                       : nullptr;
}

void SampleMemory::fill(Region& region) {
  const std::vector<char> pattern = random_pattern(region.dtype, region.is_positive);
  const auto length = static_cast<std::int64_t>(pattern.size());
  for (std::int64_t done = 0; done < region.memory->bytes(); done += length)
    stream_.copy_to_device(static_cast<char*>(region.memory->data()) + done, pattern.data(),
                           std::min(length, region.memory->bytes() - done));
  stream_.synchronize();
}

void SampleMemory::fill_indices(const OperatorCase& each) {
  indices_.clear();
  for (std::size_t i = 0; i < each.operands.size(); ++i) {
    if (each.operands[i].dtype != DType::i32) continue;
    const std::vector<std::int32_t> values =
        each.op->runs_rounds ? structure_of_rounds(each.operands[i].shape, each.attributes)
                             : random_indices(index_range(each, i), element_count(each.operands[i].shape));
    indices_.push_back(device_.allocate(aligned(byte_count(each.operands[i]))));
    stream_.copy_to_device(indices_.back()->data(), values.data(), byte_count(each.operands[i]));
    stream_.synchronize();
  }
}

void SampleMemory::provide(const OperatorCase& each) {
  Needs needs;
  for (const TensorType& type : each.operands)
    if (type.dtype != DType::i32) needs.operands[index_of(type.dtype, each)] += aligned(byte_count(type));
  for (std::size_t r = 0; r < each.results.size(); ++r)
    if (each.op->overwritten(r) < 0) needs.results += aligned(byte_count(each.results[r]));
  needs.workspace = workspace_of(*each.op, each.call(), device_.kind());
  check_fits(std::accumulate(needs.operands.begin(), needs.operands.end(), needs.results + needs.workspace));
  make_room(needs);
  for (std::size_t i = 0; i < operands_.size(); ++i) cut(operands_[i], needs.operands[i]);
  cut(results_, needs.results);
  if (held_by(workspace_) < needs.workspace) {
    workspace_.reset();
    workspace_ = device_.allocate(needs.workspace);
  }
  fill_indices(each);
}

SampleMemory::Call SampleMemory::call_at(const OperatorCase& each, int set) const {
  Call call;
  std::array<char*, std::tuple_size_v<decltype(operands_)>> next_operand{};
  for (std::size_t i = 0; i < operands_.size(); ++i) next_operand[i] = place(operands_[i], set);
  char* next_result = place(results_, set);
  auto index = indices_.begin();
  for (std::size_t i = 0; i < each.operands.size(); ++i) {
    const TensorType& type = each.operands[i];
    if (type.dtype == DType::i32) {
      call.operands.push_back(tile((*index++)->data(), each.operand_places[i]));
      continue;
    }
    char*& next = next_operand[index_of(type.dtype, each)];
    const bool just_made = i == 0 && !overwrites(each);
    call.operands.push_back(
        tile(just_made ? place(operands_[index_of(type.dtype, each)], 0) : next, each.operand_places[i]));
    next += aligned(byte_count(type));
  }
  for (std::size_t r = 0; r < each.results.size(); ++r) {
    const int overwritten = each.op->overwritten(r);
    if (overwritten >= 0) {
      call.results.push_back(tile(call.operands[overwritten].data, each.result_places[r]));
      continue;
    }
    call.results.push_back(tile(next_result, each.result_places[r]));
    next_result += aligned(byte_count(each.results[r]));
  }
  call.workspace = workspace_ ? workspace_->data() : nullptr;
  return call;
}

std::vector<SampleMemory::Call> SampleMemory::calls(const OperatorCase& each) {
  provide(each);
  std::vector<Call> calls;
  int sets = results_.sets;
  for (const Region& region : operands_) sets = std::max(sets, region.sets);
  for (int set = 0; set < sets; ++set) calls.push_back(call_at(each, set));
  return calls;
}

std::vector<SampleMemory::Message> SampleMemory::messages(std::int64_t bytes) {
  check_fits(2 * aligned(bytes));
  make_room({.results = 2 * aligned(bytes)});
  cut(results_, 2 * aligned(bytes));
  std::vector<Message> messages;
  for (int set = 0; set < results_.sets; ++set) {
    char* const from = place(results_, set);
    messages.push_back({from, from + aligned(bytes)});
  }
  return messages;
}

}  // namespace alpa
