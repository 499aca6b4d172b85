# libtorch is optional and heavy: what calls it is a room or a module of its own.

option(BRAID_LIBTORCH "Build what calls libtorch, where it is found" ON)

# Sets `BRAID_HAS_LIBTORCH`. Its libraries are not built with sanitizers, so that nothing that calls it is either.
set(BRAID_HAS_LIBTORCH FALSE)
if(BRAID_LIBTORCH AND NOT BRAID_SANITIZE)
  find_path(TORCH_INCLUDE torch/csrc/jit/passes/xnnpack_rewrite.h)
  find_library(TORCH_LIBRARY torch)
  find_library(TORCH_CPU_LIBRARY torch_cpu)
  find_library(C10_LIBRARY c10)
  if(TORCH_INCLUDE AND TORCH_LIBRARY AND TORCH_CPU_LIBRARY AND C10_LIBRARY)
    set(BRAID_HAS_LIBTORCH TRUE)
  endif()
endif()

# braid_use_libtorch(target): gives `target` the headers and libraries, and makes one source of all that it has: the
# headers take most of the time.
function(braid_use_libtorch target)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE} ${TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(${target} PRIVATE ${TORCH_LIBRARY} ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})
  # In C++20 clang can read the headers in no other order: others copy vectors of a type that this one completes.
  target_compile_options(${target} PRIVATE "SHELL:-include ATen/core/ivalue.h")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# braid_why_no_libtorch(variable packages): why what needs `packages` is not built.
function(braid_why_no_libtorch variable packages)
  if(BRAID_SANITIZE)
    set(${variable} "not built under sanitizers, which libtorch is not built with" PARENT_SCOPE)
  elseif(NOT BRAID_LIBTORCH)
    set(${variable} "not built: BRAID_LIBTORCH is off" PARENT_SCOPE)
  else()
    set(${variable} "not built; it needs ${packages}" PARENT_SCOPE)
  endif()
endfunction()
