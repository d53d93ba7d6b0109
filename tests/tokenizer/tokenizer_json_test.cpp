// Files that are damaged, or ask for what is not there.
#include <gmock/gmock.h>

#include <functional>

#include "libalpa/base/error.h"
#include "tests/tokenizer/stored_cases.h"

namespace alpa {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(TokenizerJson, OfAnOldFormIsTaken) {
  json old = json::parse(stored_file("gpt2.json"));
  for (const char* name : {"type", "dropout", "unk_token", "byte_fallback", "ignore_merges", "fuse_unk"})
    old["model"].erase(name);
  for (const char* name : {"version", "truncation", "padding", "decoder", "post_processor", "normalizer"})
    old.erase(name);
  const auto tokenizer = make_tokenizer({"old", old.dump()});
  EXPECT_EQ(tokenizer->encode("the earth"), open_tokenizer(stored_folder + "gpt2.json")->encode("the earth"));
}

TEST(TokenizerJson, MayLeaveIdsOut) {
  json sparse = json::parse(stored_file("gpt2.json"));
  sparse["added_tokens"].push_back({{"id", 1310}, {"content", "<|eot|>"}, {"special", true}});
  const auto tokenizer = make_tokenizer({"sparse", sparse.dump()});
  EXPECT_EQ(tokenizer->vocabulary(), 1311);
  EXPECT_EQ(tokenizer->special_token("<|eot|>"), 1310);
  EXPECT_THAT([&] { tokenizer->decode({{1305}}); },
              ThrowsMessage<Error>(HasSubstr("no token has the id 1305")));
}

TEST(TokenizerJson, IsRefusedByTheFieldThatIsWrong) {
  const struct {
    std::function<void(json&)> spoil;
    const char* says;
  } cases[] = {
      {[](json& t) { t.erase("model"); }, "model is missing"},
      {[](json& t) { t["model"] = 5; }, "model is no object"},
      {[](json& t) { t["model"]["type"] = "Unigram"; },
       R"(model.type is '"Unigram"', which is not supported)"},
      {[](json& t) { t["model"]["byte_fallback"] = true; },
       "model.byte_fallback is true, which is not supported"},
      {[](json& t) { t["model"]["byte_fallback"] = 1; }, "model.byte_fallback is neither true nor false"},
      {[](json& t) { t["model"]["dropout"] = 0.1; }, "model.dropout is set, which is not supported"},
      {[](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; }, "model.end_of_word_suffix is set"},
      {[](json& t) { t["model"]["vocab"] = json::array(); }, "model.vocab is no object"},
      {[](json& t) { t["model"]["vocab"].erase("\u0120"); },
       "model.vocab has no token for the byte 32, '\u0120'"},
      {[](json& t) { t["model"]["vocab"]["a"] = 7; }, "model.vocab has the id 7 twice, for 'a' too"},
      {[](json& t) { t["model"]["vocab"]["a"] = -1; }, "model.vocab['a'] is no id"},
      {[](json& t) { t["model"]["vocab"]["a"] = 1 << 30; },
       "model.vocab['a'] is no id, which are integers from 0 to 1048575"},
      {[](json& t) { t["model"]["vocab"]["a"] = "b"; }, "model.vocab['a'] is no id"},
      {[](json& t) { t["model"]["merges"] = "a b"; }, "model.merges is no array"},
      {[](json& t) { t["model"]["merges"][3] = "a b c"; }, "model.merges[3] is no pair of tokens"},
      {[](json& t) { t["model"]["merges"][3] = json::array({"a"}); }, "model.merges[3] is no pair of tokens"},
      {[](json& t) { t["model"]["merges"][3] = "a zq"; },
       "model.merges[3] needs 'zq', which is no token of model.vocab"},
      {[](json& t) { t["model"]["merges"][3] = "z q"; },
       "model.merges[3] needs 'zq', which is no token of model.vocab"},
      {[](json& t) { t["added_tokens"] = 1; }, "added_tokens is no array"},
      {[](json& t) { t["added_tokens"][0].erase("content"); }, "added_tokens[0].content is missing"},
      {[](json& t) { t["added_tokens"][0]["id"] = 5; }, "added_tokens[0] gives '<|endoftext|>' the id 5"},
      {[](json& t) { t["added_tokens"].push_back(t["added_tokens"][0]); },
       "added_tokens[1] is '<|endoftext|>' again"},
      {[](json& t) { t["added_tokens"][0]["single_word"] = true; },
       "added_tokens[0].single_word is true, which is not"},
      {[](json& t) {
         t["normalizer"] = {{"type", "Lowercase"}};
       },
       "normalizer is 'Lowercase', which is not supported"},
      {[](json& t) {
         t["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}};
       },
       "normalizer.normalizers[0] is 'NFKC', which is not supported"},
      {[](json& t) { t["pre_tokenizer"] = nullptr; }, "pre_tokenizer is missing"},
      {[](json& t) {
         t["pre_tokenizer"] = {{"type", "Metaspace"}};
       },
       "pre_tokenizer is 'Metaspace', which is not supported"},
      {[](json& t) {
         t["pre_tokenizer"] = {{"type", "Digits"}};
       },
       "pre_tokenizer has no ByteLevel"},
      {[](json& t) {
         t["pre_tokenizer"] = {
             {"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "MergedWithNext"}};
       },
       "pre_tokenizer.behavior is 'MergedWithNext', which is not supported"},
      {[](json& t) {
         t["pre_tokenizer"] = {
             {"type", "Split"}, {"pattern", {{"Regex", "(?m:a)"}}}, {"behavior", "Isolated"}};
       },
       "a regular expression has the group '(?m:', which is not supported"},
  };
  const json good = json::parse(stored_file("gpt2.json"));
  for (const auto& [spoil, says] : cases) {
    json spoiled = good;
    spoil(spoiled);
    EXPECT_THAT(
        [&] {
          make_tokenizer({"spoiled.json", spoiled.dump()});
        },
        ThrowsMessage<Error>(AllOf(HasSubstr("tokenizer 'spoiled.json'"), HasSubstr(says))));
  }
}

TEST(TokenizerJson, IsRefusedWhereItIsNoJson) {
  const std::string good = stored_file("gpt2.json");
  const auto refuses = [](const std::string& content, const std::string& says) {
    EXPECT_THAT(
        [&] {
          make_tokenizer({"spoiled.json", content});
        },
        ThrowsMessage<Error>(AllOf(HasSubstr("tokenizer 'spoiled.json': it "), HasSubstr(says))));
  };
  for (const std::size_t bytes : {std::size_t{1}, good.size() / 3, good.size() / 2, good.size() - 10})
    refuses(good.substr(0, bytes), "is not JSON: ");
  refuses("{\"model\": \"\xff\"}", "is not JSON: ");
  refuses("{\"a\":" + std::string(1 << 20, '['), "lies 1048577 deep, and 32 is the most");
}

}  // namespace
}  // namespace alpa
