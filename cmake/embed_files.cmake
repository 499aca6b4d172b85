# Script behind braid_embed: writes the C++ file OUT with the text of FILES.
list(SORT FILES)
set(text "#include <vector>\n\n#include \"braid/base/embedded_file.h\"\n\nnamespace braid {\n")
string(APPEND text "std::span<const EmbeddedFile> ${FUNCTION}();\n"
                   "std::span<const EmbeddedFile> ${FUNCTION}() {\n"
                   "  static const std::vector<EmbeddedFile> files = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WLE)
  get_filename_component(base ${file} NAME)
  file(READ ${file} content)
  # Raw string literals are limited to 64 KiB by some compilers: split into pieces.
  string(LENGTH "${content}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${content}" ${at} 8000 piece)
    string(APPEND pieces "\n     R\"braid_embed(${piece})braid_embed\"")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND text "    {\"${name}\", \"${base}\",${pieces}},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n}  // namespace braid\n")
file(WRITE ${OUT} "${text}")
