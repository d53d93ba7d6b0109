#include "libalpa/model/expression.h"

#include <gmock/gmock.h>

#include <cmath>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Numbers numbers{{"model", Number::of(std::int64_t{768})},
                      {"heads", Number::of(std::int64_t{12})},
                      {"rate", Number::of(0.5)}};

TEST(Expression, OfIntegersIsAnExactInteger) {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, std::int64_t>>{{"7", 7},
                                                         {"model / heads", 64},
                                                         {"4*model", 3072},
                                                         {"2 + 3 * 4", 14},
                                                         {"(2 + 3) * 4", 20},
                                                         {"10 - 2 - 3", 5},
                                                         {"-model + 1", -767},
                                                         {"9223372036854775807", INT64_MAX},
                                                         {"64 / 4 / 2", 8},
                                                         {"ceil(1.0 * model / 100)", 8},
                                                         {"ceil(1.0 * model / heads)", 64},
                                                         {"ceil(-rate)", 0},
                                                         {"ceil(model)", 768}}) {
    const Number number = evaluate(text, numbers);
    EXPECT_TRUE(number.is_integer) << text;
    EXPECT_EQ(number.integer, value) << text;
  }
}

TEST(Expression, PadsToTheNextMultiple) {
  Numbers padding = numbers;
  padding[kPaddedTo] = Number::of(std::int64_t{100});
  for (const auto& [text, value] : std::vector<std::pair<std::string, std::int64_t>>{
           {"padded(model)", 800}, {"padded(model + 32)", 800}, {"padded(0)", 0}, {"2 * padded(1)", 200}})
    EXPECT_EQ(evaluate(text, padding).integer, value) << text;
  EXPECT_EQ(evaluate("padded(model)", numbers).integer, 768);
  EXPECT_THAT([&] { evaluate("padded(0.5)", padding); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("only integers from 0 on are padded")));
}

TEST(Expression, WithARealIsAReal) {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, double>>{{"0.02 / sqrt(2 * heads)", 0.02 / std::sqrt(24.0)},
                                                   {"1.0 / 3", 1.0 / 3},
                                                   {"1e-5", 1e-5},
                                                   {"rate * 2", 1},
                                                   {"sqrt(16)", 4}}) {
    const Number number = evaluate(text, numbers);
    EXPECT_FALSE(number.is_integer) << text;
    EXPECT_EQ(number.real, value) << text;
  }
}

TEST(Expression, RefusesWhatHasNoValueAndSaysWhere) {
  for (const auto& [text, fault] : std::vector<std::pair<std::string, std::string>>{
           {"model / 5", "in 'model / 5': 768 is not divisible by 5"},
           {"modle", "no number is named 'modle', did you mean 'model'?"},
           {"1 / 0", "division by zero"},
           {"1.5 / (heads - 12)", "division by zero"},
           {"9223372036854775807 + 1", "does not fit into 64 bits"},
           {"-9223372036854775807 * 2", "does not fit into 64 bits"},
           {"9223372036854775808", "the integer is too large"},
           {"1e308 * 10.0", "not a finite number"},
           {"sqrt(-1)", "square root of a negative number"},
           {"ceil(1e30)", "does not fit into 64 bits"},
           {"", "expected a number or a name, found the end"},
           {"2 +", "expected a number or a name, found the end"},
           {"2 $ 3", "at character 3: expected an operator, found '$'"},
           {"(2", "expected ')'"},
           {"2 model", "expected an operator, found 'm'"},
           {std::string(2000, '('), "longer than 1000 characters"},
           {std::string(500, '('), "nested more than 64 levels deep"},
           {std::string(500, '-') + "1", "nested more than 64 levels deep"}})
    EXPECT_THAT(([&, text = text] { evaluate(text, numbers); }), ThrowsMessage<Error>(HasSubstr(fault)))
        << text;
}

TEST(Expression, ReturnsTheNamesItMentions) {
  EXPECT_THAT(names_in("4 * model / heads + sqrt(model) - unknown"),
              ElementsAre("model", "heads", "unknown"));
}

TEST(Expression, NumbersAreWrittenSoThatTheyReadBackTheSame) {
  EXPECT_EQ(number_text(Number::of(1.0)), "1.0");
  EXPECT_EQ(number_text(Number::of(1e-5)), "1e-05");
  EXPECT_EQ(number_text(Number::of(std::int64_t{-3})), "-3");
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324})
    EXPECT_EQ(evaluate(number_text(Number::of(value)), {}).real, value);
}

TEST(Expression, DistinguishesANumberAloneFromAnExpression) {
  for (const char* text : {"1", "-2", "0.5", "1e-05"}) EXPECT_TRUE(is_plain_number(text)) << text;
  for (const char* text : {"1 + 1", "model", "", "1-2", ".5"}) EXPECT_FALSE(is_plain_number(text)) << text;
}

}  // namespace
}  // namespace alpa
