#pragma once
#include <cstddef>
#include <vector>

namespace alpa {

/// Something of every stage that a pipeline may have: of each range of layers, on each of several sizes of
/// submeshes (by their index).
template <class T>
class SpanTable {
 public:
  SpanTable(int layers, std::size_t sizes, const T& of_each = {})
      : layers_(static_cast<std::size_t>(layers)),
        sizes_(sizes),
        all_(layers_ * (layers_ + 1) * sizes, of_each) {}

  T& at(int first, int end, std::size_t size) { return all_[place(first, end, size)]; }
  const T& at(int first, int end, std::size_t size) const { return all_[place(first, end, size)]; }
  const std::vector<T>& all() const { return all_; }

 private:
  std::size_t place(int first, int end, std::size_t size) const {
    return (static_cast<std::size_t>(first) * (layers_ + 1) + static_cast<std::size_t>(end)) * sizes_ + size;
  }

  std::size_t layers_, sizes_;
  std::vector<T> all_;
};

}  // namespace alpa
