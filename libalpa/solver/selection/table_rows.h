#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

/// The rows of the table of a step of Elimination, one after the other: what all its factors add up to for
/// the strategies of its node. Keeps references.
template <class Step, class Tables>
class TableRows {
 public:
  TableRows(const Step& step, const std::vector<double>& own_cost, const Tables& table_of)
      : count_(step.row), extent_(step.extent), own_cost_(own_cost), index_(step.outer, 0) {
    const std::vector<std::ptrdiff_t> in_row = step.stride_in_row();
    for (std::size_t f = 0; f < step.factors.size(); ++f) {
      const auto& factor = step.factors[f];
      bool is_number = true, is_row = true;
      for (std::size_t d = step.outer; d < step.extent.size(); ++d) {
        is_number = is_number && factor.stride[d] == 0;
        is_row = is_row && factor.stride[d] == in_row[d];
      }
      const Term term{table_of(factor), factor.own_stride, factor.stride.data(), factor.places.data(), f};
      (is_number ? numbers_ : is_row ? rows_ : parts_).push_back(term);
    }
    spread_.assign(parts_.size(), Spread(own_cost.size(), count_));
    along_.resize(rows_.size() + parts_.size());
  }

  struct Term {
    const double* at = nullptr;  ///< for the node's first strategy
    std::ptrdiff_t own_stride = 0;
    const std::ptrdiff_t* stride = nullptr;
    const int* places = nullptr;
    std::size_t factor = 0;
  };

  struct OpenStrategy {
    int strategy = 0;
    double cost = 0;  ///< of what is one number along the row
  };

  /// Those that can be taken along the present row.
  const std::vector<OpenStrategy>& open() {
    costs_ = own_cost_;
    for (const Term& term : numbers_)
      for (std::size_t a = 0; a < costs_.size(); ++a)
        costs_[a] += term.at[static_cast<std::ptrdiff_t>(a) * term.own_stride];
    open_.clear();
    for (std::size_t a = 0; a < costs_.size(); ++a)
      if (costs_[a] < infinity) open_.push_back({static_cast<int>(a), costs_[a]});
    return open_;
  }

  /// The entries of all other factors along the row, an array for each.
  const std::vector<const double*>& along(int strategy) {
    auto next = along_.begin();
    for (const Term& term : rows_) *next++ = term.at + strategy * term.own_stride;
    for (std::size_t p = 0; p < parts_.size(); ++p)
      *next++ = spread_[p].along(parts_[p].at + strategy * parts_[p].own_stride, parts_[p].places, strategy);
    return along_;
  }

  void next() {
    for (std::size_t d = index_.size(); d-- > 0;) {
      const bool carries = ++index_[d] == extent_[d];
      const std::ptrdiff_t by = carries ? 1 - extent_[d] : 1;
      for (auto* terms : {&numbers_, &rows_, &parts_})
        for (Term& term : *terms) term.at += by * term.stride[d];
      if (!carries) break;
      index_[d] = 0;
    }
  }

  std::ptrdiff_t count() const { return count_; }
  /// Those that are one number along a row, those that have its entries side by side, and those that have
  /// them at `places`.
  const std::vector<Term>& numbers() const { return numbers_; }
  const std::vector<Term>& rows() const { return rows_; }
  const std::vector<Term>& parts() const { return parts_; }

 private:
  /// A part's entries side by side, kept for the rows that have the same.
  struct Spread {
    Spread(std::size_t strategies, std::ptrdiff_t row)
        : count(row), from(strategies, nullptr), entries(strategies * static_cast<std::size_t>(row)) {}

    const double* along(const double* at, const int* places, int strategy) {
      double* to = entries.data() + strategy * count;
      if (std::exchange(from[strategy], at) != at)
        for (std::ptrdiff_t k = 0; k < count; ++k) to[k] = at[places[k]];
      return to;
    }

    std::ptrdiff_t count;
    std::vector<const double*> from;  ///< [strategy]
    std::vector<double> entries;      ///< [strategy][count]
  };

  std::ptrdiff_t count_;
  const std::vector<int>& extent_;
  const std::vector<double>& own_cost_;
  std::vector<int> index_;
  std::vector<Term> numbers_, rows_, parts_;
  std::vector<Spread> spread_;  // [part]
  std::vector<double> costs_;
  std::vector<OpenStrategy> open_;
  std::vector<const double*> along_;
};

}  // namespace alpa
