#include "libalpa/checkpoint/first_rank.h"

#include <cstdint>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/comm/together.h"

namespace alpa {
namespace {

/// Meetings of ranks of which each has as much to read as it has.
class Meetings {
 public:
  Meetings(Communicator& ranks, Stream& stream) : ranks_(ranks), stream_(stream) {}

  void read(std::int64_t bytes) {
    constexpr std::int64_t piece_bytes = 64 << 20;
    unmet_ += bytes;
    if (unmet_ < piece_bytes) return;
    unmet_ = 0;
    meet(true);
  }

  /// Returns when all ranks are done.
  void done() {
    while (meet(false)) continue;
  }

 private:
  /// Whether any rank is still at work.
  bool meet(bool works) {
    std::int32_t any = works ? 1 : 0;
    ranks_.all_reduce(stream_, &any, 1, DType::i32, Reduction::max);
    return any != 0;
  }

  Communicator& ranks_;
  Stream& stream_;
  std::int64_t unmet_ = 0;
};

/// Runs `body`; what it throws, once all ranks are done.
void with_meetings(Communicator& ranks, Stream& stream, const std::function<void(const BytesRead&)>& body) {
  Meetings meetings(ranks, stream);
  std::exception_ptr failure;
  try {
    body([&](std::int64_t bytes) { meetings.read(bytes); });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::peer) throw;  // there is a rank that does not come
    failure = std::current_exception();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  meetings.done();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::string text_of_first_rank(Communicator& ranks, Stream& stream,
                               const std::function<std::string(const BytesRead&)>& body) {
  std::int64_t failed = 0;  // the kind of the error
  std::string result, hint;
  try {
    with_meetings(ranks, stream, [&](const BytesRead& read) {
      if (ranks.rank() == 0) result = body(read);
    });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::peer) throw;
    failed = static_cast<std::int64_t>(error.kind());
    result = error.happened();
    hint = error.hint();
  } catch (const std::exception& error) {
    failed = static_cast<std::int64_t>(ErrorKind::run_time);
    result = error.what();
  }
  ranks.broadcast(stream, &failed, sizeof failed, 0);
  result = text_of_rank(ranks, stream, result, 0);
  if (failed == 0) return result;
  throw Error(static_cast<ErrorKind>(failed), result, text_of_rank(ranks, stream, hint, 0));
}

std::string text_of_first_rank(Communicator& ranks, Stream& stream,
                               const std::function<std::string()>& body) {
  return text_of_first_rank(ranks, stream, [&](const BytesRead&) { return body(); });
}

void on_first_rank(Communicator& ranks, Stream& stream, const std::function<void()>& body) {
  text_of_first_rank(ranks, stream, [&] { return body(), std::string(); });
}

void read_together(Communicator& ranks, Stream& stream, const std::function<void(const BytesRead&)>& body) {
  together(ranks, stream, [&] { with_meetings(ranks, stream, body); });
}

}  // namespace alpa
