# SPDX-License-Identifier: MIT
# Compiler and linker flags, in one place, for targets of this project only (never exported to users of the library).

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

function(weir_link_flags target)
    target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
    if(WEIR_SANITIZE)
        target_link_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
    else()
        # The sanitizers' runtimes are found in the program, so a library built with them has open symbols.
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
endfunction()

function(weir_flags target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
        C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Wstrict-prototypes
        -fno-omit-frame-pointer -fno-semantic-interposition)
    if(WEIR_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(WEIR_DEBUG_CHECKS)
        target_compile_definitions(${target} PRIVATE WR_DEBUG=1)
    endif()
    if(WEIR_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
    elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
        # clang 14 and older know the levels to 2 only.
        set(fortify 2)
        if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
            set(fortify 3)
        endif()
        target_compile_options(${target} PRIVATE
            -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify})
    endif()
endfunction()

# A program of this project, linked with the static library if there is one.
function(weir_program target)
    add_executable(${target} ${ARGN})
    weir_flags(${target})
    weir_link_flags(${target})
    if(TARGET weir_static)
        target_link_libraries(${target} PRIVATE weir_static)
    endif()
endfunction()
