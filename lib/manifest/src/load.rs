//! Reads the files of one image.

use std::path::Path;

use crate::diagnostic::Diagnostics;
use crate::system::{ImageKind, Overrides, System};

/// Reads and checks everything that the image `image` for `board` (default: the one that app.toml names) is made of.
///
/// # Errors
/// Everything that is wrong in any of the files.
pub fn load(root: &Path, board: Option<&str>, image: ImageKind, overrides: &Overrides) -> Result<System, Diagnostics> {
    let _ = (root, board, image, overrides);
    todo!()
}

/// Names and descriptions of all boards, sorted.
///
/// # Errors
/// If a board.toml cannot be read or has no description.
pub fn boards(root: &Path) -> Result<Vec<(String, String)>, Diagnostics> {
    let _ = root;
    todo!()
}
