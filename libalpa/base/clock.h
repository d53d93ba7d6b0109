#pragma once

namespace alpa {

/// Seconds from some moment on, by the clock that nobody sets.
double monotonic_s();

}  // namespace alpa
