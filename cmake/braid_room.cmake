# braid_room(NAME [USES room…] [LINK target…])
#
# Declares the room src/braid/NAME, the current source directory, as the static library braid_NAME
# (alias braid::NAME; `/` becomes `_`) from all .cc files beside its CMakeLists.txt. USES names the
# rooms whose headers it may include, which the build checks; LINK names outside libraries, which
# stay private to the room.
function(braid_room name)
  cmake_parse_arguments(ROOM "" "" "USES;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  string(REPLACE "/" "_" flat_name ${name})
  set(target braid_${flat_name})
  add_library(${target} STATIC ${sources})
  add_library(braid::${flat_name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${flat_name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                              $<INSTALL_INTERFACE:include>)
  foreach(used IN LISTS ROOM_USES)
    string(REPLACE "/" "_" used ${used})
    target_link_libraries(${target} PUBLIC braid_${used})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ROOM_LINK})
  braid_compile_options(${target})
  if(BRAID_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM braid_room_headers)
  endif()
  set_property(GLOBAL APPEND PROPERTY BRAID_ROOMS ${target})
  braid_check_includes(${name} ${ROOM_USES})
endfunction()

# braid_inner_rooms(VARIABLE): adds every folder of the current source directory that declares a room,
# and lists these rooms in VARIABLE.
function(braid_inner_rooms variable)
  file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME outer)
  set(rooms "")
  foreach(list IN LISTS lists)
    cmake_path(GET list PARENT_PATH folder)
    cmake_path(GET folder FILENAME inner)
    add_subdirectory(${inner})
    list(APPEND rooms ${outer}/${inner})
  endforeach()
  set(${variable} "${rooms}" PARENT_SCOPE)
endfunction()

# braid_check_includes(ROOM USED…): fails the build where a source of the room includes a header of a
# room other than USED. Checked again when a source changes.
function(braid_check_includes room)
  string(REPLACE "/" "_" flat_name ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes_checked)
  list(JOIN sources "," source_list)
  list(JOIN ARGN "," used_list)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DROOM=${room} -DUSED=${used_list} -DSOURCES=${source_list}
            -DSTAMP=${stamp} -P ${PROJECT_SOURCE_DIR}/cmake/check_includes.cmake
    DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/check_includes.cmake
    VERBATIM)
  add_custom_target(${flat_name}_includes DEPENDS ${stamp})
  add_dependencies(braid_${flat_name} ${flat_name}_includes)
endfunction()

# braid_precompiled_headers(NAME HEADER…): the target NAME, which does no more than precompile HEADERs
# for others to reuse. Sources still include what they use: builds without this option see to it.
function(braid_precompiled_headers name)
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} OBJECT ${empty})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# braid_compile_options(TARGET [WITHOUT sanitizer]): the warnings and sanitizers that every target of the
# project is built with, but for a sanitizer that it need not have.
function(braid_compile_options target)
  cmake_parse_arguments(OPTIONS "" "WITHOUT" "" ${ARGN})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                           -Wcast-qual -Wunused -Woverloaded-virtual)
  # Assertions name sources by their paths in the project: they compile to the same bytes wherever it is.
  target_compile_options(${target} PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  # g++ 12 sees an overlap in `"text" + std::string` that is not there (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(BRAID_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  string(REPLACE "," ";" sanitizers "${BRAID_SANITIZE}")
  list(REMOVE_ITEM sanitizers "" ${OPTIONS_WITHOUT})
  list(JOIN sanitizers "," sanitizers)
  if(sanitizers)
    # Two checks of every use of a pointer that take a fifth of the time to compile: what follows a null
    # pointer ends without them, and nothing but bytes and blocks, which assert it, is cast to.
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizers} -fno-sanitize=null,alignment
                                             -fno-omit-frame-pointer -fno-sanitize-recover=all)
  endif()
  if(BRAID_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${BRAID_SANITIZE})
  endif()
endfunction()

# Leaves of the test sources in the list VARIABLE those with tests of threads (`Parallel.…`, or with
# Thread in their names, HACKING.md) and what is no test; nothing when there are no such tests.
function(braid_tests_of_threads variable)
  set(kept "")
  set(found FALSE)
  foreach(source IN LISTS ${variable})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} tests REGEX "\\(Parallel,|Thread")
    if(tests)
      set(found TRUE)
    endif()
    if(tests OR NOT source MATCHES "_test\\.cc$")
      list(APPEND kept ${source})
    endif()
  endforeach()
  if(NOT found)
    set(kept "")
  endif()
  set(${variable} "${kept}" PARENT_SCOPE)
endfunction()

# What all test sources are compiled with. Checks of their own arithmetic would double the time that they take
# to compile, and so would optimising them under sanitizers; the rooms that they call have both.
function(braid_test_options target)
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  braid_compile_options(${target} WITHOUT undefined)
  if(BRAID_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# braid_test(NAME ROOM… [TRIALS FILE…]): the test program NAME from all .cc files beside its CMakeLists.txt and below.
# TRIALS are those with loops of a thousand trials and more, and what these are held against: they are optimised where
# other tests are not, too, most of all where there are no sanitizers. Under the thread sanitizer, the program has the
# files with tests of threads alone, and there is none when there are no such files.
function(braid_test name)
  cmake_parse_arguments(TEST "" "" "TRIALS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(BRAID_SANITIZE STREQUAL "thread")
    braid_tests_of_threads(sources)
    if(NOT sources)
      return()
    endif()
  endif()
  set(targets ${name})
  if(TEST_TRIALS AND NOT BRAID_SANITIZE STREQUAL "thread")
    list(TRANSFORM TEST_TRIALS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${TEST_TRIALS})
    # Without the precompiled headers, which are not optimised.
    add_library(${name}_trials OBJECT ${TEST_TRIALS})
    list(APPEND targets ${name}_trials)
  endif()
  add_executable(${name} ${sources})
  foreach(target IN LISTS targets)
    foreach(room IN LISTS TEST_UNPARSED_ARGUMENTS)
      target_link_libraries(${target} PRIVATE braid_${room})
    endforeach()
    braid_test_options(${target})
  endforeach()
  target_link_libraries(${name} PRIVATE braid_test_support GTest::gtest_main)
  if(TARGET ${name}_trials)
    if(BRAID_SANITIZE)
      target_compile_options(${name}_trials PRIVATE -O1)
    else()
      target_compile_options(${name}_trials PRIVATE $<$<CONFIG:Debug>:-O2>)
    endif()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_trials>)
  endif()
  if(BRAID_PRECOMPILED_HEADERS)
    target_precompile_headers(${name} REUSE_FROM braid_test_headers)
  endif()
  gtest_discover_tests(${name} PROPERTIES TIMEOUT 600 DISCOVERY_TIMEOUT 60)
endfunction()
