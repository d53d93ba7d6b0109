#include "libalpa/dataset/mixed_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr std::int64_t usual_piece_tokens = 1 << 16, least_piece_tokens = 64;
constexpr std::int64_t pieces_of_a_source = 64;  // at least, so that its end is cut off by little
constexpr std::int64_t turns_of_a_round = 1000;

}  // namespace

MixedTokens::MixedTokens(std::string name, std::vector<Part> parts)
    : name_(std::move(name)), parts_(std::move(parts)), piece_tokens_(usual_piece_tokens) {
  for (const Part& part : parts_)
    while (piece_tokens_ > least_piece_tokens && part.tokens->size() < pieces_of_a_source * piece_tokens_)
      piece_tokens_ /= 2;
  for (const Part& part : parts_) part_pieces_.push_back(part.tokens->size() / piece_tokens_);
  choose_turns();
  choose_length();
}

/// Shares of a round in whole turns, those that were cut off most rounded up; then each turn goes to the part
/// that is the furthest behind its share, in whole numbers, so that it is the same on every machine.
void MixedTokens::choose_turns() {
  const double total = std::accumulate(parts_.begin(), parts_.end(), 0.0,
                                       [](double sum, const Part& part) { return sum + part.weight; });
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> cut_off;
  std::int64_t left = turns_of_a_round;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const double share = parts_[part].weight / total * static_cast<double>(turns_of_a_round);
    shares.push_back(static_cast<std::int64_t>(share));
    left -= shares.back();
    cut_off.emplace_back(static_cast<double>(shares.back()) - share, part);
  }
  std::ranges::sort(cut_off);
  for (std::int64_t i = 0; i < left; ++i) ++shares[cut_off[static_cast<std::size_t>(i)].second];
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (shares[part] == 0)
      throw Error(ErrorKind::input,
                  fmt::format("'{}': '{}' has a share of {:.2g}, less than a thousandth", name_,
                              parts_[part].name, parts_[part].weight / total),
                  "leave it out, or raise its weight");
  part_turns_.assign(parts_.size(), 0);
  for (std::int64_t turn = 0; turn < turns_of_a_round; ++turn) {
    const auto behind = [&](std::size_t part) {
      return shares[part] * (turn + 1) - part_turns_[part] * turns_of_a_round;
    };
    std::size_t next = 0;
    for (std::size_t part = 1; part < parts_.size(); ++part)
      if (behind(part) > behind(next)) next = part;
    turns_.push_back({next, part_turns_[next]++});
  }
}

/// How many of the first `pieces` are of a part.
std::int64_t MixedTokens::pieces_given(std::size_t part, std::int64_t pieces) const {
  const std::int64_t rest = pieces % turns_of_a_round;
  return pieces / turns_of_a_round * part_turns_[part] +
         std::count_if(turns_.begin(), turns_.begin() + rest,
                       [part](const Turn& turn) { return turn.part == part; });
}

bool MixedTokens::suffices(std::int64_t pieces) const {
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (pieces_given(part, pieces) > part_pieces_[part] * parts_[part].repeat) return false;
  return true;
}

void MixedTokens::choose_length() {
  std::int64_t all = 0;
  for (std::size_t part = 0; part < parts_.size(); ++part) all += part_pieces_[part] * parts_[part].repeat;
  std::int64_t most = all + 1;  // which does not suffice
  while (most - pieces_ > 1) {
    const std::int64_t middle = pieces_ + (most - pieces_) / 2;
    (suffices(middle) ? pieces_ : most) = middle;
  }
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (pieces_given(part, pieces_) == 0)
      throw Error(ErrorKind::input,
                  fmt::format("'{}': the sources have too few tokens to be mixed; '{}' has no turn", name_,
                              parts_[part].name),
                  "more data, or another weight");
}

bool MixedTokens::can_read_ahead() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.tokens->can_read_ahead(); });
}

std::int64_t MixedTokens::held_bytes() const {
  return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Part& part) { return sum + part.tokens->held_bytes(); });
}

void MixedTokens::read(std::int64_t first, std::span<std::int32_t> into) const {
  while (!into.empty()) {
    const std::int64_t piece = first / piece_tokens_, at = first % piece_tokens_;
    const Turn& turn = turns_[static_cast<std::size_t>(piece % turns_of_a_round)];
    const std::int64_t nth = piece / turns_of_a_round * part_turns_[turn.part] + turn.before;
    const std::int64_t count = std::min(piece_tokens_ - at, std::ssize(into));
    parts_[turn.part].tokens->read(nth % part_pieces_[turn.part] * piece_tokens_ + at,
                                   into.first(static_cast<std::size_t>(count)));
    into = into.subspan(static_cast<std::size_t>(count));
    first += count;
  }
}

std::optional<std::int32_t> MixedTokens::document_end() const {
  for (const Part& part : parts_)
    if (const std::optional<std::int32_t> end = part.tokens->document_end()) return end;
  return std::nullopt;
}

std::vector<const TokenSource*> MixedTokens::parts() const {
  std::vector<const TokenSource*> sources;
  for (const Part& part : parts_) sources.push_back(part.tokens.get());
  return sources;
}

std::string MixedTokens::description() const {
  std::string shares;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::int64_t given = pieces_given(part, pieces_);
    shares +=
        fmt::format("{}{:.1f} % of '{}' ({:.3g} times its tokens)", part == 0 ? "" : ", ",
                    100.0 * static_cast<double>(given) / static_cast<double>(pieces_), parts_[part].name,
                    static_cast<double>(given) / static_cast<double>(part_pieces_[part]));
  }
  return fmt::format("mix '{}', {} tokens: {}", name_, size(), shares);
}

}  // namespace alpa
