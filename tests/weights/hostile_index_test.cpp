#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/weights/safetensors_shards.h"
#include "tests/h5/temporary_folder.h"

// A model in two files, one.safetensors with the tensor a and two.safetensors with b and c, and what an index
// may say of them: anything but the truth is refused with the one message that names the index.
namespace alpa {
namespace {

using ::testing::HasSubstr;

class ModelInTwoFiles : public ::testing::Test {
 protected:
  ModelInTwoFiles() {
    write("one.safetensors", {{"a", "F32", {1}}}, {"aaaa"});
    write("two.safetensors", {{"b", "BF16", {1}}, {"c", "F32", {1}}}, {"bb", "cccc"});
  }

  void write(const std::string& file, const std::vector<StoredTensor>& tensors,
             const std::vector<std::string>& bytes) const {
    SafetensorsWriter writer(folder_.path() / file, tensors);
    for (std::size_t i = 0; i < bytes.size(); ++i) writer.write(writer.tensors()[i], bytes[i]);
    writer.publish();
  }

  SafetensorsShards with_index(const std::string& text) const {
    const std::filesystem::path index = folder_.path() / "index.json";
    std::ofstream(index, std::ios::binary) << text;
    return SafetensorsShards(index);
  }

  TemporaryFolder folder_;
};

std::string index_of(const std::string& weight_map) {
  return "{\"metadata\": {\"total_size\": 10}, \"weight_map\": {" + weight_map + "}}";
}

const std::string of_a = "\"a\": \"one.safetensors\"", of_b = "\"b\": \"two.safetensors\"",
                  of_c = "\"c\": \"two.safetensors\"", whole = of_a + ", " + of_b + ", " + of_c;

TEST_F(ModelInTwoFiles, IsReadAsIfItWereOne) {
  SafetensorsShards model = with_index(index_of(whole));
  ASSERT_EQ(model.tensors().size(), 3u);
  EXPECT_EQ(model.tensors().at("b").dtype, "BF16");
  for (const auto& [name, expected] : {std::pair("a", "aaaa"), {"b", "bb"}, {"c", "cccc"}}) {
    const StoredTensor& tensor = model.tensors().at(name);
    std::string bytes(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    model.read(tensor, 0, tensor.end - tensor.begin, bytes.data());
    EXPECT_EQ(bytes, expected);
  }
}

TEST_F(ModelInTwoFiles, MayHaveAnythingAsMetadata) {
  const std::string metadata = R"("metadata": {"a": [{"b": null}, -1, 2.5, true], "weight_map": {"a": {}}})";
  EXPECT_EQ(with_index("{\"weight_map\": {" + whole + "}, " + metadata + "}").tensors().size(), 3u);
  EXPECT_EQ(with_index("{\"weight_map\": {" + whole + "}}").tensors().size(), 3u);
}

struct IndexRow {
  const char* name;
  std::string index, message;
};

void PrintTo(const IndexRow& row, std::ostream* out) { *out << row.name; }

class HostileIndex : public ModelInTwoFiles, public ::testing::WithParamInterface<IndexRow> {};

TEST_P(HostileIndex, IsRefused) {
  try {
    const SafetensorsShards model = with_index(GetParam().index);
    FAIL() << "it has " << model.tensors().size() << " tensors";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    EXPECT_FALSE(error.hint().empty());
    EXPECT_LT(std::string(error.what()).size(), 1000u) << "it repeats too much of the file";
  }
}

std::string many_files() {
  std::string map = whole;
  for (int i = 0; i < 511; ++i)
    map += ", \"x" + std::to_string(i) + "\": \"" + std::to_string(i) + ".safetensors\"";
  return map;
}

INSTANTIATE_TEST_SUITE_P(
    Table, HostileIndex,
    ::testing::Values(
        // The JSON.
        IndexRow{"empty", "", "index.json' is not an index of safetensors files: it is not JSON from byte"},
        IndexRow{"cut", "{\"weight_map\": {" + whole, "not JSON from byte"},
        IndexRow{"more_after", index_of(whole) + "{}", "not JSON from byte"},
        IndexRow{"array", "[]", "it is an array, expected an object"},
        IndexRow{"number", "1", "it is a number, expected an object"},
        IndexRow{"no_map", "{\"metadata\": {}}", "weight_map is missing or has no tensors"},
        IndexRow{"empty_map", index_of(""), "weight_map is missing or has no tensors"},
        IndexRow{"text_as_map", "{\"weight_map\": \"a\"}", "a text as 'weight_map', expected an object"},
        IndexRow{"null_as_metadata", "{\"metadata\": null}", "null as 'metadata', expected an object"},
        IndexRow{"array_as_map", "{\"weight_map\": []}", "an array as 'weight_map', expected an object"},
        IndexRow{"other_section", "{\"weights\": {}}", "'weights', expected metadata and weight_map"},
        IndexRow{"map_twice", "{\"weight_map\": {}, \"weight_map\": {}}", "'weight_map' appears twice"},
        IndexRow{"deep", "{\"weight_map\": {\"a\": " + std::string(1000000, '['), "an array as 'a'"},
        IndexRow{"object_as_file", index_of("\"a\": {}"), "an object as 'a', expected the name of a file"},
        IndexRow{"number_as_file", index_of("\"a\": 1"), "a number as 'a', expected the name of a file"},
        // Names.
        IndexRow{"no_name", index_of("\"\": \"one.safetensors\""), "'' as a tensor's name"},
        IndexRow{"tensor_twice", index_of(whole + ", " + of_a), "tensor 'a' appears twice"},
        IndexRow{"folder_above", index_of("\"a\": \"../one.safetensors\""),
                 "'../one.safetensors' as the file of tensor 'a', expected a name that ends in .safetensors"},
        IndexRow{"absolute", index_of("\"a\": \"/etc/passwd\""), "'/etc/passwd' as the file of tensor 'a'"},
        IndexRow{"folder_below", index_of("\"a\": \"x/one.safetensors\""), "of a file in the same folder"},
        IndexRow{"hidden_file", index_of("\"a\": \"..safetensors\""), "'..safetensors' as the file"},
        IndexRow{"other_ending", index_of("\"a\": \"pytorch_model-00001-of-00002.bin\""),
                 "ends in .safetensors"},
        IndexRow{"escape_in_a_file", index_of("\"a\": \"\\u001b[2J.safetensors\""), "'?[2J.safetensors'"},
        IndexRow{"long_file", index_of("\"a\": \"" + std::string(300, 'x') + ".safetensors\""), "xxx...'"},
        IndexRow{"many_files", index_of(many_files()), "more than 512 files"},
        // What the files say.
        IndexRow{"missing_file", index_of(whole + ", \"d\": \"three.safetensors\""),
                 "three.safetensors': No such file or directory"},
        IndexRow{"missing_tensor", index_of(whole + ", \"d\": \"two.safetensors\""),
                 "index.json' and its files differ: tensor 'd' is not in 'two.safetensors'"},
        IndexRow{"tensor_left_out", index_of(of_a + ", " + of_b),
                 "tensor 'c' of 'two.safetensors' is not in the index"},
        IndexRow{"tensor_in_another_file", index_of("\"a\": \"two.safetensors\", \"b\": \"one.safetensors\""),
                 "tensor 'a' is in 'one.safetensors', expected in 'two.safetensors' alone"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(ModelInTwoFiles, HasEachTensorOnce) {
  write("two.safetensors", {{"a", "F32", {1}}, {"b", "BF16", {1}}, {"c", "F32", {1}}},
        {"AAAA", "bb", "cccc"});
  EXPECT_THAT([&] { with_index(index_of(whole)); },
              ::testing::ThrowsMessage<Error>(
                  HasSubstr("tensor 'a' is in 'two.safetensors', expected in 'one.safetensors' alone")));
}

}  // namespace
}  // namespace alpa
