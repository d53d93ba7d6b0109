#include "libalpa/weights/rearrangement.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <map>
#include <string>
#include <type_traits>

#include "libalpa/base/float_types.h"

namespace alpa {
namespace {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else
    return from_float<To>(to_float(value));
}

constexpr std::int64_t elements_at_a_time = 1 << 20;

}  // namespace

Rearrangement::Rearrangement(std::string_view ours, std::string_view theirs, int part,
                             const Shape& our_shape) {
  std::map<char, Axis> named;
  std::int64_t stride = element_count(our_shape);
  std::size_t dimension = 0;
  for (const char c : ours)
    if (c != ' ') {
      const std::int64_t extent = our_shape.at(dimension++);
      stride = extent == 0 ? 0 : stride / extent;
      named[c] = {extent, stride, 0};
    }
  assert(dimension == our_shape.size());

  bool is_inside = false;
  for (const char c : theirs) {
    if (c == '(') their_shape_.push_back(1);
    if (c == '(' || c == ')') is_inside = c == '(';
    if (!std::isalnum(static_cast<unsigned char>(c))) continue;
    if (!is_inside) their_shape_.push_back(1);
    their_shape_.back() *= std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : named.at(c).extent;
  }
  stride = 1;
  for (auto c = theirs.rbegin(); c != theirs.rend(); ++c) {
    if (std::isdigit(static_cast<unsigned char>(*c))) {
      first_ += part * stride;
      stride *= *c - '0';
    } else if (std::isalpha(static_cast<unsigned char>(*c))) {
      named.at(*c).theirs = stride;
      stride *= named.at(*c).extent;
    }
  }

  std::vector<Axis> sorted;
  for (const auto& [name, axis] : named) sorted.push_back(axis);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Axis& a, const Axis& b) { return a.theirs > b.theirs; });
  for (const Axis& axis : sorted) {  // neighbours on both sides are one axis
    if (!axes_.empty() && axes_.back().ours == axis.extent * axis.ours &&
        axes_.back().theirs == axis.extent * axis.theirs && axis.theirs > 0)
      axes_.back() = {axes_.back().extent * axis.extent, axis.ours, axis.theirs};
    else
      axes_.push_back(axis);
  }
}

bool Rearrangement::is_same() const {
  return axes_.size() == 1 && axes_[0].ours == 1 && axes_[0].theirs == 1 &&
         axes_[0].extent == element_count(their_shape_);
}

/// element(ours, theirs) for all elements below `outermost` of the first axis.
template <class Element>
void Rearrangement::walk(std::size_t axis, std::int64_t ours, std::int64_t theirs, std::int64_t outermost,
                         const Element& element) const {
  if (axis == axes_.size()) return element(ours, theirs);
  const Axis& a = axes_[axis];
  const std::int64_t extent = axis == 0 ? outermost : a.extent;
  if (axis + 1 == axes_.size()) {
    for (std::int64_t i = 0; i < extent; ++i) element(ours + i * a.ours, theirs + i * a.theirs);
    return;
  }
  for (std::int64_t i = 0; i < extent; ++i)
    walk(axis + 1, ours + i * a.ours, theirs + i * a.theirs, outermost, element);
}

template <class From, class To>
void Rearrangement::gather_as(const Read& read, bool adds, To* ours) const {
  assert(!axes_.empty());
  const Axis& outer = axes_[0];
  std::int64_t inner = 1;  // elements of theirs from the first to the last of one index of the first axis
  for (std::size_t a = 1; a < axes_.size(); ++a) {
    if (axes_[a].extent == 0) return;
    inner += (axes_[a].extent - 1) * axes_[a].theirs;
  }
  const std::int64_t most =
      std::max<std::int64_t>(1, elements_at_a_time / std::max<std::int64_t>(outer.theirs, 1));
  std::vector<From> slab;
  for (std::int64_t begin = 0; begin < outer.extent; begin += most) {
    const std::int64_t count = std::min(most, outer.extent - begin);
    slab.resize(static_cast<std::size_t>((count - 1) * outer.theirs + inner));
    read(first_ + begin * outer.theirs, static_cast<std::int64_t>(slab.size()), slab.data());
    walk(0, begin * outer.ours, 0, count, [&](std::int64_t to, std::int64_t from) {
      const From value = slab[from];
      if (!adds)
        ours[to] = converted<To>(value);
      else
        ours[to] = converted<To>(to_float(ours[to]) + to_float(value));
    });
  }
}

void Rearrangement::gather(DType from, const Read& read, DType to, bool adds, void* ours) const {
  for_float_type(from, [&](auto theirs) {
    for_float_type(
        to, [&](auto mine) { gather_as<decltype(theirs)>(read, adds, static_cast<decltype(mine)*>(ours)); });
  });
}

void Rearrangement::scatter(DType type, const void* ours, void* theirs) const {
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(ours);
    T* to = static_cast<T*>(theirs);
    walk(0, 0, first_, axes_.empty() ? 1 : axes_[0].extent,
         [&](std::int64_t o, std::int64_t t) { to[t] = from[o]; });
  };
  if (dtype_bytes(type) == 4) return as(std::uint32_t{});
  as(std::uint16_t{});
}

}  // namespace alpa
