#include "libalpa/base/stop_request.h"

#include <fmt/core.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGINT};

// A signal handler reaches nothing but globals.
volatile std::sig_atomic_t asked = 0, first_signal = 0, objects = 0;

void note(int signal) {
  asked = 1;
  if (first_signal == 0) first_signal = signal;
}

void install(int signal, const struct sigaction& action, struct sigaction* earlier) {
  if (sigaction(signal, &action, earlier) != 0)
    throw Error(ErrorKind::run_time,
                fmt::format("cannot handle signal {}: {}", signal, std::strerror(errno)));
}

}  // namespace

StopRequest::StopRequest() {
  assert(objects == 0);
  objects = 1;
  asked = 0;
  first_signal = 0;
  for (int i = 0; i < 3; ++i) {
    struct sigaction action {};
    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    if (kSignals[i] == SIGINT) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    install(kSignals[i], action, &earlier_[i]);
  }
}

StopRequest::~StopRequest() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &earlier_[i], nullptr);
  objects = 0;
}

bool StopRequest::is_asked() const { return asked != 0; }
int StopRequest::signal() const { return first_signal; }
void StopRequest::ask() { asked = 1; }

}  // namespace alpa
