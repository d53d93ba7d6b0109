#pragma once

namespace alpa {

/// A case for each type of a variant, for std::visit: the compiler refuses one that leaves a type out.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace alpa
