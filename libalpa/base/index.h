#pragma once
#ifndef __CUDACC__  // nvcc does not compile fmt, and kernels print no indices
#include <fmt/core.h>
#endif

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace alpa {

/// The place of one of many things of a kind, of a type of its own, so that a stage is not taken for a rank.
/// It is read as an int, to print and to store it; no int is taken for it unless that is said. -1: of none.
template <class Of>
class Index {
 public:
  constexpr Index() = default;
  template <std::integral Integer>
  constexpr explicit Index(Integer place) : place_(static_cast<int>(place)) {}

  constexpr operator int() const { return place_; }
  constexpr Index& operator++() {
    ++place_;
    return *this;
  }

 private:
  int place_ = -1;
};

/// Places of things of different kinds are not to be compared.
template <class Of, class Other>
requires(!std::same_as<Of, Other>) bool operator==(Index<Of>, Index<Other>) = delete;

/// Places one after another, to go through. (Views of <ranges> do not compile with clang before 16.)
template <class I>
class Indices {
 public:
  class iterator {
   public:
    using value_type = I;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    iterator(int place, int step) : place_(place), step_(step) {}
    I operator*() const { return I(place_); }
    iterator& operator++() {
      place_ += step_;
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      place_ += step_;
      return before;
    }
    bool operator==(const iterator&) const = default;

   private:
    int place_ = 0, step_ = 1;
  };

  Indices(int begin, int end, int step) : begin_(begin, step), end_(end, step) {}
  iterator begin() const { return begin_; }
  iterator end() const { return end_; }

 private:
  iterator begin_, end_;
};

/// All places from the first to before `end`.
template <class I>
Indices<I> indices_to(std::size_t end) {
  return {0, static_cast<int>(end), 1};
}

/// A vector whose places are of one kind.
template <class I, class T>
class Indexed {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  Indexed() = default;
  Indexed(std::initializer_list<T> items) : items_(items) {}
  explicit Indexed(std::size_t count, const T& each = T()) : items_(count, each) {}
  explicit Indexed(std::vector<T> items) : items_(std::move(items)) {}

  typename std::vector<T>::reference operator[](I at) { return items_[static_cast<std::size_t>(int(at))]; }
  typename std::vector<T>::const_reference operator[](I at) const {
    return items_[static_cast<std::size_t>(int(at))];
  }
  typename std::vector<T>::const_reference at(I place) const {
    return items_.at(static_cast<std::size_t>(int(place)));
  }

  Indices<I> indices() const { return indices_to<I>(items_.size()); }
  Indices<I> reversed_indices() const { return {static_cast<int>(items_.size()) - 1, -1, -1}; }
  /// Of what stands in here.
  I index_of(const T& item) const { return I(&item - items_.data()); }

  /// Appends, and returns the place.
  I push_back(T item) {
    items_.push_back(std::move(item));
    return I(items_.size() - 1);
  }
  void pop_back() { items_.pop_back(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }
  const T& front() const { return items_.front(); }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void clear() { items_.clear(); }
  void reserve(std::size_t count) { items_.reserve(count); }
  void resize(std::size_t count, const T& each = T()) { items_.resize(count, each); }
  void assign(std::size_t count, const T& each) { items_.assign(count, each); }
  iterator begin() { return items_.begin(); }
  iterator end() { return items_.end(); }
  const_iterator begin() const { return items_.begin(); }
  const_iterator end() const { return items_.end(); }

  /// Without its kind: to be stored, or sent.
  const std::vector<T>& items() const { return items_; }
  std::vector<T>& items() { return items_; }

  bool operator==(const Indexed&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace alpa

#ifndef __CUDACC__
template <class Of>
struct fmt::formatter<alpa::Index<Of>> : fmt::formatter<int> {
  auto format(alpa::Index<Of> place, fmt::format_context& context) const {
    return fmt::formatter<int>::format(static_cast<int>(place), context);
  }
};
#endif
