#include "libalpa/h5/provenance.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace alpa {

Provenance provenance_here(std::string command, std::string software, std::string job_id,
                           std::string settings) {
  Provenance here{std::move(command), std::move(software), std::move(job_id), {}, {}, {},
                  std::move(settings)};

  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  here.date = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                          utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  here.host = host;

  passwd entry{}, *found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found)
    here.user = found->pw_name;
  else
    here.user = fmt::format("{}", geteuid());
  return here;
}

}  // namespace alpa
