#include "libalpa/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace alpa {
namespace {

TEST(JsonObject, WritesMembersOnOneLineInTheOrderGiven) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(JsonObject()
                .set("step", 1)
                .set("loss", 2.5)
                .set("name", "gpt")
                .set("done", true)
                .set_null("eta")
                .text(),
            R"({"step":1,"loss":2.5,"name":"gpt","done":true,"eta":null})");
}

TEST(JsonObject, CanBeSetAgain) {
  JsonObject object;
  object.set("step", 1).clear();
  EXPECT_EQ(object.text(), "{}");
  std::string line = "line: ";
  object.set("step", 2).write(line);
  EXPECT_EQ(line, R"(line: {"step":2})");
}

TEST(JsonObject, WritesNumbersThatReadBackToTheSameBits) {
  for (const double number : {0.1, 1.0 / 3, 1e300, -2.5e-300, 3e16, 123456789.0})
    EXPECT_EQ(std::stod(JsonObject().set("x", number).text().substr(5)), number);
  EXPECT_EQ(JsonObject().set("x", std::numeric_limits<std::int64_t>::min()).text(),
            R"({"x":-9223372036854775808})");
}

TEST(JsonObject, WritesNullForNumbersThatJsonLacks) {
  EXPECT_EQ(JsonObject().set("a", std::nan("")).set("b", -INFINITY).text(), R"({"a":null,"b":null})");
}

TEST(JsonObject, EscapesText) {
  EXPECT_EQ(JsonObject().set("a\"b", "line\nend\\ \x01 \xC3\xA9").text(),
            "{\"a\\\"b\":\"line\\nend\\\\ \\u0001 \xC3\xA9\"}");
  EXPECT_EQ(JsonObject().set("x", "\xff").text(), "{\"x\":\"\xEF\xBF\xBD\"}");
}

TEST(JsonArray, HoldsATraceOneEventPerLine) {
  JsonArray events;
  events.add(JsonObject().set("name", "forward").set("ts", 0.5).set("args", JsonObject().set("slot", 0)));
  events.add(JsonObject().set("name", "send").set("dims", JsonArray().add(2).add(0.5).add("x")));
  EXPECT_EQ(events.text(),
            "[{\"name\":\"forward\",\"ts\":0.5,\"args\":{\"slot\":0}},\n{\"name\":\"send\",\"dims\":[2,0.5,"
            "\"x\"]}]");
}

}  // namespace
}  // namespace alpa
