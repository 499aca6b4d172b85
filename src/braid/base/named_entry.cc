#include "braid/base/named_entry.h"

#include <filesystem>

#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {
namespace {

/// A user's file, which is neither one of the forms that name themselves (a plan, a graph, a
/// profile) nor what braid show prints.
Document open_own_file(const std::string& path, const std::string& what) {
  Document document = Document::parse_file(path);
  const Value root = document.root();
  const std::string remedy = "give a name of braid list " + what + "s or a YAML file of your own";
  if (root.is_object() && root["braid"].exists()) {
    root["braid"].fail(
        "this is a braid " + in_quotes(root["braid"].string_or("")) + " file, not a " + what,
        remedy);
  }
  if (root.is_object() && root["provenance"].exists()) {
    root["provenance"].fail(
        "this is what braid show --json prints, with all figures resolved, and is not read back",
        remedy);
  }
  return document;
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::vector<std::string> names_of(std::span<const EmbeddedFile> files) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : files) names.emplace_back(file.name);
  return names;
}

Document open_entry(const std::string& name, const Where& named,
                    std::span<const EmbeddedFile> files, const std::string& what) {
  for (const EmbeddedFile& file : files) {
    if (file.name == name) {
      return Document::parse(file.text, Document::Syntax::yaml, std::string(file.file));
    }
  }
  const std::string sibling = (std::filesystem::path(named.file).parent_path() / name).string();
  if (!named.file.empty() && file_exists(sibling)) return open_own_file(sibling, what);
  if (file_exists(name)) return open_own_file(name, what);
  throw Error(named, "no " + what + " '" + name + "': neither in the catalogue nor a file",
              did_you_mean(name, names_of(files)));
}

}  // namespace braid
