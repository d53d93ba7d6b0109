#pragma once
#include <string>

namespace alpa {

/// How a file came about. It is kept in /provenance, the only part of a file in which two equal runs differ:
/// `h5diff --exclude-path /provenance a.h5 b.h5` compares the rest.
struct Provenance {
  std::string command;   ///< the command line
  std::string software;  ///< name and version, e.g. "alpa-plan 0.1.0"
  std::string job_id;    ///< of Slurm; "" outside a job
  std::string date;      ///< UTC, ISO 8601; filled in by provenance_here()
  std::string host;
  std::string user;
  std::string settings;  ///< in effect, an inline table of TOML; "" where there are none
};

/// Adds what this process can see by itself: date, host and user.
Provenance provenance_here(std::string command, std::string software, std::string job_id,
                           std::string settings = {});

}  // namespace alpa
