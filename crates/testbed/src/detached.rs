//! A control plane that stays when its starter ends (`cargo xtask cluster`): at most one in each cache folder.
