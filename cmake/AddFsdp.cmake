# How this project's libraries and tools are declared: a list, not a program.
#
#   fsdp_add_library(NAME SOURCES a.cpp... [TABLEGEN targets...]
#                    [LINK libraries of the project...])
#   fsdp_add_llvm_library(NAME SOURCES a.cpp... [LINK libraries...])
#   fsdp_add_tool(NAME SOURCES a.cpp... LINK libraries...)
#
# Upstream code comes from the shared libMLIR and libLLVM, which every library
# links. Never link a component archive (MLIRIR and so on): two copies of every
# TypeID may work for months.

set(FSDP_WARNINGS -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # In what TableGen writes.
  list(APPEND FSDP_WARNINGS -Wno-unused-parameter)
  # In what std::stable_sort of libstdc++ 12 is made of.
  list(APPEND FSDP_WARNINGS -Wno-deprecated-declarations)
endif()

function(fsdp_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TABLEGEN;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_TABLEGEN)
    add_dependencies(${name} ${ARG_TABLEGEN})
  endif()
  target_compile_options(${name} PRIVATE ${FSDP_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  set_property(GLOBAL APPEND PROPERTY FSDP_LIBRARIES ${name})
endfunction()

# A library of the tools, on LLVM alone. What it links says so itself, because a
# program for machines without LLVM links the same objects to LLVM's archives.
function(fsdp_add_llvm_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${FSDP_WARNINGS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY FSDP_LIBRARIES ${name})
endfunction()

function(fsdp_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_llvm_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${FSDP_WARNINGS})
  target_compile_definitions(${name} PRIVATE
    FSDP_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()
