#include <algorithm>
#include <limits>

#include "libalpa/solver/selection/presolve_rules.h"

namespace alpa {
namespace {

using Piece = SelectionNetwork::Piece;

bool is_zero(const Piece& piece) {
  return std::all_of(piece.memory.begin(), piece.memory.end(), [](std::int64_t bytes) { return bytes == 0; });
}

// Drops pieces that are empty in time or memory and joins neighbours that are equal.
void tidy(std::vector<Piece>& pieces) {
  std::vector<Piece> tidied;
  for (auto& piece : pieces) {
    if (piece.begin == piece.end || is_zero(piece)) continue;
    if (!tidied.empty() && tidied.back().end == piece.begin && tidied.back().memory == piece.memory) {
      tidied.back().end = piece.end;
    } else {
      tidied.push_back(std::move(piece));
    }
  }
  pieces = std::move(tidied);
}

// Chooses the time points to keep; see drop_time_points.
std::vector<int> points_that_matter(const Presolving& state) {
  const int points = static_cast<int>(state.capacity.size());
  std::vector<std::int64_t> most(points + 1, 0);
  std::vector<int> begins(points + 1, 0), ends(points + 1, 0);  // then: how many up to here
  for (const auto& node : state.nodes) {
    for (const auto& piece : node.pieces) {
      const auto largest = *std::max_element(piece.memory.begin(), piece.memory.end());
      most[piece.begin] += largest;
      most[piece.end] -= largest;
      ++begins[piece.begin];
      ++ends[piece.end];
    }
  }
  for (int t = 1; t <= points; ++t) {
    most[t] += most[t - 1];
    begins[t] += begins[t - 1];
    ends[t] += ends[t - 1];
  }
  std::vector<int> kept;
  for (int t = 0; t < points; ++t) {
    if (most[t] <= state.capacity[t]) continue;
    bool covered = false;
    while (!kept.empty()) {
      const int s = kept.back();
      const bool grows = ends[t] == ends[s] && state.capacity[t] <= state.capacity[s];
      covered = begins[t] == begins[s] && state.capacity[s] <= state.capacity[t];
      if (covered || !grows) break;
      kept.pop_back();
    }
    if (!covered) kept.push_back(t);
  }
  return kept;
}

}  // namespace

std::vector<Piece> sum_of_pieces(const std::vector<MappedPieces>& parts, int strategies) {
  struct Event {
    int time, sign;
    const Piece* piece;
    const std::vector<int>* map;
  };
  std::vector<Event> events;
  for (const auto& [pieces, map] : parts) {
    for (const auto& piece : *pieces) {
      events.push_back({piece.begin, 1, &piece, map});
      events.push_back({piece.end, -1, &piece, map});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });
  std::vector<Piece> sum;
  std::vector<std::int64_t> now(strategies, 0);
  for (std::size_t k = 0; k < events.size(); ++k) {
    const auto& [time, sign, piece, map] = events[k];
    for (int a = 0; a < strategies; ++a) now[a] += sign * piece->memory[(*map)[a]];
    if (k + 1 < events.size() && events[k + 1].time > time) sum.push_back({time, events[k + 1].time, now});
  }
  tidy(sum);
  return sum;
}

bool settle_memory(Presolving& state) {
  std::vector<std::int64_t> step(state.capacity.size() + 1, 0);
  bool moved = false;
  for (auto& node : state.nodes) {
    if (node.pieces.empty()) continue;
    for (auto& piece : node.pieces) {
      const auto least = *std::min_element(piece.memory.begin(), piece.memory.end());
      if (least == 0) continue;
      for (auto& bytes : piece.memory) bytes -= least;
      step[piece.begin] += least;
      step[piece.end] -= least;
      moved = true;
    }
    tidy(node.pieces);
  }
  std::int64_t used = 0;
  for (std::size_t t = 0; t < state.capacity.size(); ++t) {
    state.capacity[t] -= (used += step[t]);
    if (state.capacity[t] < 0 && state.capacity_is_limit) state.verdict = ReducedNetwork::Verdict::memory;
  }
  return moved;
}

bool drop_time_points(Presolving& state) {
  const auto kept = points_that_matter(state);
  if (kept.size() == state.capacity.size()) return false;
  std::vector<int> index(state.capacity.size() + 1);  // first kept point at or after each
  for (std::size_t t = 0, k = 0; t < index.size(); ++t) {
    while (k < kept.size() && kept[k] < static_cast<int>(t)) ++k;
    index[t] = static_cast<int>(k);
  }
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    auto& node = state.nodes[i];
    if (node.pieces.empty()) continue;
    const std::size_t before = node.pieces.size();
    for (auto& piece : node.pieces) piece.begin = index[piece.begin], piece.end = index[piece.end];
    tidy(node.pieces);
    node.changed |= node.pieces.size() != before;
  }
  for (std::size_t k = 0; k < kept.size(); ++k) {
    state.capacity[k] = state.capacity[kept[k]];
    state.time_point[k] = state.time_point[kept[k]];
  }
  state.capacity.resize(kept.size());
  state.time_point.resize(kept.size());
  return true;
}

}  // namespace alpa
