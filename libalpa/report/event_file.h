#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "libalpa/report/run_history.h"

namespace alpa {

/// The run as TensorBoard reads it from a file whose name has "tfevents" in it: records of TensorFlow
/// (core/lib/io/record_writer), each an Event (core/util/event.proto) with one scalar or more: loss,
/// evaluation_loss, learning_rate, gradient_norm, samples_per_s, tokens_per_s, step_s. `begin_s`: when the
/// first step began, in seconds since 1970.
std::string event_file(const RunHistory&, double begin_s);

/// CRC-32C (Castagnoli, RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

}  // namespace alpa
