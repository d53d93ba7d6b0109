#pragma once

namespace alpa::emulation {

/// Whether the run-time compiler of emulated devices is there. It is the compiler that this program was built
/// with, and takes a while for each text.
inline bool compiles = false;

/// Texts that were compiled.
int texts_compiled();

}  // namespace alpa::emulation
