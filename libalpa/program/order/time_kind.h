#pragma once

namespace alpa {

/// What an instruction spends its time on.
enum class TimeKind { compute, collective, transfer };

}  // namespace alpa
