# What is installed, and what a package holds.
include(GNUInstallDirs)

# Folders that are made by this are removed by `./dev uninstall`; those that were there stay.
install(CODE "
  set(SEGUE_MADE \"\")
  set(list \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/segue/installed.dirs\")
  if(EXISTS \"\${list}\")
    file(READ \"\${list}\" SEGUE_MADE)
  endif()
  foreach(folder . ${CMAKE_INSTALL_BINDIR} lib lib/systemd lib/systemd/user ${CMAKE_INSTALL_LIBEXECDIR}
          share share/bash-completion share/bash-completion/completions share/doc share/fish
          share/fish/vendor_completions.d share/man share/man/man1 share/man/man5 share/zsh
          share/zsh/site-functions)
    if(NOT IS_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${folder}\")
      string(APPEND SEGUE_MADE \"\${folder}\\n\")
    endif()
  endforeach()
")

install(TARGETS segue DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS segue-shim DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/segue)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/workflows ${PROJECT_SOURCE_DIR}/schemas
        DESTINATION ${CMAKE_INSTALL_DATADIR}/segue USE_SOURCE_PERMISSIONS)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/SECURITY.md
              ${PROJECT_SOURCE_DIR}/ARCHITECTURE.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN "*.py" EXCLUDE) # they make its pictures

# The manual pages and the completions are what the program says of itself.
set(manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
  COMMAND segue manual --all ${manual}
  COMMAND sh -c "gzip -9n ${manual}/man*/*"
  COMMAND segue completion bash > ${manual}/segue
  COMMAND segue completion zsh > ${manual}/_segue
  COMMAND segue completion fish > ${manual}/segue.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/made
  DEPENDS segue COMMENT "writing the manual pages and completions" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}/made)
install(DIRECTORY ${manual}/man1 ${manual}/man5 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${manual}/segue DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Debian keeps zsh's site-functions for administrators: its package goes elsewhere (CMakePresets.json).
set(SEGUE_ZSH_FUNCTIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "zsh completions")
install(FILES ${manual}/_segue DESTINATION ${SEGUE_ZSH_FUNCTIONS})
install(FILES ${manual}/segue.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# What Debian's policy asks of a package: the licence, a changelog, and why the shim is static.
if(SEGUE_DEBIAN)
  file(WRITE ${PROJECT_BINARY_DIR}/debian/overrides
       "# It must work in any root that an agent is given.\n"
       "segue: statically-linked-binary [usr/libexec/segue/segue-shim]\n")
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE date)
  file(WRITE ${PROJECT_BINARY_DIR}/debian/changelog
       "segue (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n"
       " -- segue <maintainers@segue.example>  ${date}")
  execute_process(COMMAND gzip -9nkf ${PROJECT_BINARY_DIR}/debian/changelog)
  install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
  install(FILES ${PROJECT_BINARY_DIR}/debian/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_BINARY_DIR}/debian/overrides
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME segue)
else()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
          DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

# The units name the program where it was installed, which is known only then (--prefix); and what
# there is stands in a list, for `./dev uninstall`.
install(CODE "
  set(SEGUE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/segue\")
  get_filename_component(SEGUE \"\${SEGUE}\" ABSOLUTE)
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(GLOB units \"${PROJECT_SOURCE_DIR}/contrib/systemd/*.in\")
  foreach(unit IN LISTS units)
    get_filename_component(name \"\${unit}\" NAME_WLE)
    configure_file(\"\${unit}\" \"\${root}/lib/systemd/user/\${name}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/user/\${name}\")
  endforeach()
  if(NOT \"\$ENV{DESTDIR}\" STREQUAL \"\" OR DEFINED CPACK_TEMPORARY_INSTALL_DIRECTORY)
    return()
  endif()
  set(paths \"\")
  set(folders \"\")
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    get_filename_component(file \"\${file}\" ABSOLUTE)
    file(RELATIVE_PATH path \"\${prefix}\" \"\${file}\")
    string(APPEND paths \"\${path}\\n\")
    get_filename_component(folder \"\${path}\" DIRECTORY)
    while(folder MATCHES \"segue\")
      string(APPEND folders \"\${folder}\\n\")
      get_filename_component(folder \"\${folder}\" DIRECTORY)
    endwhile()
  endforeach()
  file(WRITE \"\${root}/share/segue/installed\" \"\${paths}\")
  file(WRITE \"\${root}/share/segue/installed.dirs\" \"\${folders}\${SEGUE_MADE}\")
")

# `./dev package`: what Debian's tools say of libraries that are linked, and by hand those that are
# loaded when first needed.
set(CPACK_PACKAGE_NAME segue)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "segue <maintainers@segue.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs coding agents through workflows and judges each step")
set(CPACK_PACKAGE_DESCRIPTION
"Runs coding agents through the movements of a workflow. After each one it
judges where to go next: by structured output first, then by a tag, then by
an AI that weighs the conditions. Every judgment is in a session log with
the method that decided it, so that it can be audited.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4, libmicrohttpd12, libexpat1")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "git, libsqlite3-0")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bubblewrap, gh, libpq5, openssh-client")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_ARCHIVE_FILE_NAME segue-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR})
include(CPack)
