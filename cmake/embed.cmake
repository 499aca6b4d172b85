# braid_embed(TARGET FUNCTION FILE…)
#
# Compiles the text of the given files into TARGET, so that an installed program needs no data
# directory. Defines `std::span<const braid::EmbeddedFile> braid::FUNCTION()`, sorted by name
# (the file's name without folder and extension).
function(braid_embed target function)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFUNCTION=${function} "-DFILES=${ARGN}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # Linters run before it is made.
  target_sources(${target} PRIVATE ${out})
endfunction()
