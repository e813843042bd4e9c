# The page of `heddle serve`, made from web/ with node and npm. `heddle_embed_web(TARGET)` gives a
# target the source that src/server/web_files.h declares; without node, npm or the npm registry that
# source says what was missing, and so does one line here.
option(HEDDLE_WEB "Build the page of heddle serve (needs node and npm)" ON)

set(HEDDLE_WEB_DIR ${PROJECT_SOURCE_DIR}/web)
set(HEDDLE_WEB_MISSING "")  # why there is no page, if so

# Lets web/node_modules hold what web/package-lock.json names. The folder is shared by all build
# folders, hence the lock.
function(heddle_install_web_packages result)
  set(stamp ${HEDDLE_WEB_DIR}/node_modules/.heddle-stamp)
  file(SHA256 ${HEDDLE_WEB_DIR}/package-lock.json wanted)
  file(LOCK ${HEDDLE_WEB_DIR}/.packages.lock GUARD FUNCTION TIMEOUT 300 RESULT_VARIABLE failed)
  if(failed)
    set(${result} "web/.packages.lock could not be locked (${failed})" PARENT_SCOPE)
    return()
  endif()
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
    if(installed STREQUAL wanted)
      set(${result} "" PARENT_SCOPE)
      return()
    endif()
  endif()
  message(STATUS "web: npm ci")
  execute_process(COMMAND ${HEDDLE_NPM} ci --no-audit --no-fund --ignore-scripts --prefer-offline
      --fetch-retries 1 --fetch-timeout 15000
    WORKING_DIRECTORY ${HEDDLE_WEB_DIR} TIMEOUT 300
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    string(REGEX MATCHALL "npm (error|ERR!) [^\n]+" why "${output}")
    list(APPEND why "exit ${failed}")
    list(SUBLIST why 0 2 why)  # the code, and what it is about
    list(JOIN why ", " why)
    set(${result} "npm ci failed in web/: ${why}" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${stamp} ${wanted})
  set(${result} "" PARENT_SCOPE)
endfunction()

if(HEDDLE_WEB)
  find_program(HEDDLE_NODE NAMES node nodejs)
  find_program(HEDDLE_NPM npm)
  if(NOT HEDDLE_NODE OR NOT HEDDLE_NPM)
    set(HEDDLE_WEB_MISSING "node or npm was not found")
  else()
    heddle_install_web_packages(HEDDLE_WEB_MISSING)
  endif()
else()
  set(HEDDLE_WEB_MISSING "HEDDLE_WEB is off")
endif()
if(HEDDLE_WEB_MISSING)
  string(PREPEND HEDDLE_WEB_MISSING "heddle was built without its page: ")
  message(NOTICE "${HEDDLE_WEB_MISSING}")  # on standard error, where the scripts let it through
endif()

function(heddle_embed_web target)
  if(HEDDLE_WEB_MISSING)
    set(cpp ${PROJECT_BINARY_DIR}/web/web_files_missing.cpp)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/web_files_missing.cpp.in ${cpp} @ONLY)
  else()
    set(cpp ${PROJECT_BINARY_DIR}/web/web_files.cpp)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${HEDDLE_WEB_DIR}/src/*)
    add_custom_command(OUTPUT ${cpp}
      COMMAND ${HEDDLE_NODE} build.mjs --out ${PROJECT_BINARY_DIR}/web/dist --cpp ${cpp}
      WORKING_DIRECTORY ${HEDDLE_WEB_DIR}
      DEPENDS ${sources} ${HEDDLE_WEB_DIR}/build.mjs ${HEDDLE_WEB_DIR}/embed.mjs
        ${HEDDLE_WEB_DIR}/index.html ${HEDDLE_WEB_DIR}/icon.svg ${HEDDLE_WEB_DIR}/package-lock.json
      COMMENT "Building the page" VERBATIM)
    add_custom_target(heddle_web DEPENDS ${cpp})
    set_source_files_properties(${cpp} PROPERTIES GENERATED TRUE)
    add_dependencies(${target} heddle_web)
  endif()
  target_sources(${target} PRIVATE ${cpp})
endfunction()
