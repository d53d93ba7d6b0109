#pragma once
#include "apps/command.h"

namespace alpa {

/// Looks at the files that a command is about to read and write. Throws Error(usage) for an output that is an
/// input or another output (by whatever name or link), that lies in a folder which is read, whose name cannot
/// be printed, or that exists: unless `replaces` (--force), or it is continued or renewed.
void check_files(const Command&, bool replaces);

}  // namespace alpa
