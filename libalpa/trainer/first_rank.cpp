#include "libalpa/trainer/first_rank.h"

#include <cstdint>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

void share(Communicator& ranks, Stream& stream, std::string& text) {
  auto size = static_cast<std::int64_t>(text.size());
  ranks.broadcast(stream, &size, sizeof size, 0);
  text.resize(static_cast<std::size_t>(size));
  if (size > 0) ranks.broadcast(stream, text.data(), size, 0);
}

}  // namespace

std::string text_of_first_rank(Communicator& ranks, Stream& stream,
                               const std::function<std::string()>& body) {
  std::int64_t failed = 0;  // the kind of the error
  std::string result, hint;
  if (ranks.rank() == 0) {
    try {
      result = body();
    } catch (const Error& error) {
      failed = static_cast<std::int64_t>(error.kind());
      result = error.happened();
      hint = error.hint();
    } catch (const std::exception& error) {
      failed = static_cast<std::int64_t>(ErrorKind::run_time);
      result = error.what();
    }
  }
  ranks.broadcast(stream, &failed, sizeof failed, 0);
  share(ranks, stream, result);
  if (failed == 0) return result;
  share(ranks, stream, hint);
  throw Error(static_cast<ErrorKind>(failed), result, hint);
}

void on_first_rank(Communicator& ranks, Stream& stream, const std::function<void()>& body) {
  text_of_first_rank(ranks, stream, [&] { return body(), std::string(); });
}

}  // namespace alpa
