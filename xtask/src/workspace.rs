//! Where things are.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::process;

/// Folders of this checkout.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder of app.toml.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the checkout that this tool was built from.
    ///
    /// # Errors
    /// If cargo cannot tell.
    pub fn find() -> Result<Self> {
        // Cargo says where the crate is now; the folder may have moved since the tool was built.
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own.parent().ok_or_else(|| miette!("{} has no parent folder", own.display()))?;
        Self::at(root)
    }

    /// The checkout in the folder `root`.
    ///
    /// # Errors
    /// If it is none, or cargo fails.
    pub fn at(root: &Path) -> Result<Self> {
        let root = root.canonicalize().into_diagnostic().wrap_err_with(|| format!("no folder {}", root.display()))?;
        let mut command = Command::new(cargo());
        command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]).current_dir(&root);
        let metadata: serde_json::Value = serde_json::from_str(&process::output(&mut command)?).into_diagnostic()?;
        let target = metadata["target_directory"].as_str().ok_or_else(|| miette!("cargo names no target folder"))?;
        Ok(Self { target: PathBuf::from(target), root })
    }

    /// Where `dist` writes the image of a board.
    #[must_use]
    pub fn dist(&self, board: &str, image: &str) -> PathBuf {
        let name = if image == "normal" { board.to_owned() } else { format!("{board}-{image}") };
        self.target.join("dist").join(name)
    }

    /// Where what `setup` makes is kept.
    #[must_use]
    pub fn setup(&self) -> PathBuf {
        self.target.join("setup")
    }
}

/// The cargo that runs this tool.
#[must_use]
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
