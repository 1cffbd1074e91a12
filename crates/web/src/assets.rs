//! The page's files, which are part of the program.

/// Path, type, content.
const ASSETS: [(&str, &str, &str); 11] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("../page/page.css")),
    ("/main.js", JAVASCRIPT, include_str!("../page/main.js")),
    ("/dom.js", JAVASCRIPT, include_str!("../page/dom.js")),
    ("/timeline.js", JAVASCRIPT, include_str!("../page/timeline.js")),
    ("/plots.js", JAVASCRIPT, include_str!("../page/plots.js")),
    ("/graph.js", JAVASCRIPT, include_str!("../page/graph.js")),
    ("/state.js", JAVASCRIPT, include_str!("../page/state.js")),
    ("/streams.js", JAVASCRIPT, include_str!("../page/streams.js")),
    ("/layout.js", JAVASCRIPT, include_str!("../page/layout.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns the type and content of the file at `path`.
pub(crate) fn asset(path: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(at, ..)| *at == path).map(|(_, kind, content)| (*kind, *content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for (path, _, content) in ASSETS {
            let elsewhere = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path}");
            assert!(!content.contains("innerHTML"), "{path}: names are untrusted text");
        }
    }

    #[test]
    fn every_file_that_the_page_names_exists() {
        for (path, _, content) in ASSETS {
            for part in content
                .split(['"', '\''])
                .filter(|part| part.ends_with(".js") || part.ends_with(".css"))
            {
                let named = part.trim_start_matches('.');
                assert!(asset(named).is_some(), "{path} names {named}");
            }
        }
    }
}
