#pragma once

namespace alpa {

/// The calling thread sleeps mostly, and is to run as soon as it wakes even where another has the core: asks
/// Linux for the shortest slices (EEVDF, from 6.12 on; without a word where that is not to be had).
void run_promptly();

}  // namespace alpa
