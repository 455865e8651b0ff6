//! Storage of a pod: waits for its claims, makes its volumes, and keeps their content up to date.

use super::Worker;
use crate::downward::PodFacts;
use crate::events::{Speaker, Tone};
use crate::sources::{References, Sources};
use crate::translate::translate_names;
use crate::volume::claims::{self, ClaimState};
use crate::volume::payload::{self, Material, Tokens};
use crate::volume::place::{Behind, PodVolumes, behind};
use crate::volume::writer;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ServiceAccount, Volume};
use kube::Api;
use kube::api::PostParams;
use std::path::Path;

/// Lifetime asked for service-account tokens that name none (API default).
const TOKEN_SECONDS: i64 = 3600;

/// Stands in for a token where the API server gives none.
const NO_TOKEN: &str = "this cluster gives no service account tokens";

/// Whether the API server has no such request, as opposed to no such service account.
fn is_without_tokens(refusal: &kube::core::Status) -> bool {
    refusal.is_not_found() && refusal.details.as_ref().is_none_or(|details| details.name.is_empty())
}

impl Worker {
    /// Makes the volumes if they are not there yet and refreshes content that changed. Says whether
    /// containers may start.
    pub(super) async fn storage_is_ready(&mut self) -> bool {
        if self.volumes.is_some() && !self.refresh {
            return true;
        }
        match self.prepare_storage().await {
            Ok(volumes) => {
                self.volumes = Some(volumes);
                self.refresh = false;
                self.complaint = None;
                true
            }
            Err(message) => {
                self.retry = true;
                if self.complaint.as_ref() != Some(&message) {
                    let text = message.clone();
                    self.context.events.pod(
                        Speaker::Kubelet,
                        &self.pod,
                        Tone::Warning,
                        "FailedMount",
                        text,
                    );
                    self.complaint = Some(message);
                }
                // Content that can't be refreshed leaves running containers what they have.
                self.volumes.is_some()
            }
        }
    }

    /// The sources of the pod changed: a container that waits for them need wait no longer.
    pub(super) fn refresh_sources(&mut self) {
        self.refresh = true;
        for container in &mut self.record.containers {
            if container.waits_for_configuration() {
                container.not_before = None;
            }
        }
    }

    async fn prepare_storage(&mut self) -> Result<PodVolumes, String> {
        let references = References::of(&self.pod);
        self.sources = Sources::load(&self.context.client, self.namespace(), &references)
            .await
            .map_err(|error| format!("cannot read the pod's ConfigMaps and Secrets: {error}"))?;
        if self.record.address.is_none() {
            let key = format!("{}/{}", self.namespace(), self.name());
            let address =
                self.context.addresses().address_of(&key).map_err(|error| error.to_string())?;
            self.record.address = Some(address);
        }
        let volumes = self.locate_volumes().await?;
        for volume in self.spec().volumes.iter().flatten() {
            self.fill_volume(volume, &volumes).await.map_err(|why| {
                format!("MountVolume.SetUp failed for volume \"{}\" : {why}", volume.name)
            })?;
        }
        Ok(volumes)
    }

    async fn locate_volumes(&self) -> Result<PodVolumes, String> {
        let mut volumes = PodVolumes::default();
        for (number, volume) in self.spec().volumes.iter().flatten().enumerate() {
            let kind = behind(volume, self.name()).map_err(|why| {
                format!("MountVolume.SetUp failed for volume \"{}\" : {why}", volume.name)
            })?;
            let folder = match &kind {
                Behind::Scratch | Behind::Content => self.folder.join(format!("v{number}")),
                Behind::Claim(claim) => {
                    match claims::look(&self.context.client, self.namespace(), claim).await {
                        Ok(ClaimState::Bound(key)) => self.context.claims().folder_of(&key),
                        Ok(ClaimState::Waiting(why)) => return Err(why),
                        Ok(ClaimState::WaitingForConsumer) => {
                            return Err(format!("claim \"{claim}\" is not bound yet"));
                        }
                        Err(error) => {
                            return Err(format!("cannot read claim \"{claim}\": {error}"));
                        }
                    }
                }
            };
            volumes.0.insert(volume.name.clone(), (kind, folder));
        }
        Ok(volumes)
    }

    async fn fill_volume(&self, volume: &Volume, volumes: &PodVolumes) -> Result<(), String> {
        let Some((_, folder)) = volumes.0.get(&volume.name) else { return Ok(()) };
        let tokens = self.tokens_of(volume, folder).await?;
        let facts = PodFacts::of(&self.pod, self.record.address);
        let material = Material { pod: &self.pod, facts, sources: &self.sources, tokens: &tokens };
        let owner = self.context.starter.user.as_ref();
        let Some(mut files) = payload::of_volume(volume, &material)? else {
            return writer::create_folder(folder, 0o755, owner).map_err(|error| error.to_string());
        };
        let paths = volumes.union_of_mounts(&self.spec(), &self.container_folder_of_first_app());
        for file in files.values_mut().filter(|file| file.translated) {
            if let Ok(text) = std::str::from_utf8(&file.bytes) {
                let text = translate_names(text, |name| self.context.resolve(&self.pod, name));
                file.bytes = paths.translate(&text).into_bytes();
            }
        }
        writer::write(folder, &files, owner).map(drop).map_err(|error| error.to_string())
    }

    /// Tokens that a projected volume wants; those that it has already are kept.
    async fn tokens_of(&self, volume: &Volume, folder: &Path) -> Result<Tokens, String> {
        let mut tokens = Tokens::new();
        let parts =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for wanted in parts.filter_map(|part| part.service_account_token.as_ref()) {
            if let Ok(kept) = std::fs::read_to_string(folder.join(&wanted.path)) {
                tokens.insert(wanted.path.clone(), kept);
                continue;
            }
            let spec = self.spec();
            let account = spec.service_account_name.as_deref().unwrap_or("default");
            let accounts: Api<ServiceAccount> =
                Api::namespaced(self.context.client.clone(), self.namespace());
            let request = TokenRequest {
                spec: Some(TokenRequestSpec {
                    audiences: wanted.audience.clone().map(|audience| vec![audience]),
                    expiration_seconds: Some(wanted.expiration_seconds.unwrap_or(TOKEN_SECONDS)),
                    bound_object_ref: Some(BoundObjectReference {
                        api_version: Some("v1".to_owned()),
                        kind: Some("Pod".to_owned()),
                        name: self.pod.metadata.name.clone(),
                        uid: self.pod.metadata.uid.clone(),
                    }),
                }),
                ..TokenRequest::default()
            };
            let answer =
                accounts.create_token_request(account, &PostParams::default(), &request).await;
            let token = match answer {
                Ok(answer) => answer.status.and_then(|status| status.token).unwrap_or_default(),
                Err(kube::Error::Api(refusal)) if is_without_tokens(&refusal) => {
                    NO_TOKEN.to_owned()
                }
                Err(kube::Error::Api(refusal)) => {
                    return Err(format!("failed to fetch token: {}", refusal.message));
                }
                Err(error) => return Err(format!("failed to fetch token: {error}")),
            };
            tokens.insert(wanted.path.clone(), token);
        }
        Ok(tokens)
    }
}
